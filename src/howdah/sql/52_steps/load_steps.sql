-- load_steps · the steps of jobs that are stored: what an attempt need not do again
--
--   ends_in  how long until a sleep ends, or a wait times out
--
-- Locks nothing. Wakes nobody.

create or replace function howdah.load_steps(p_ids uuid[])
returns table (job_id uuid, kind text, name text, number int, function text, result jsonb, ended bool, timed_out bool, ends_in interval)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
    return query
    select s.job_id, s.kind, s.name, s.number, s.function, s.result::jsonb, s.ended_at is not null, s.timed_out, s.until - howdah.clock()
    from howdah.job_steps as s
    where s.job_id = any (p_ids);
end;
$$;
