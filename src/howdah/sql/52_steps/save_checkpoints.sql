-- save_checkpoints · store the last checkpoint of jobs, in place of the one before
--
--   p_worker_id, p_ids, p_attempts   the leases, one per job
--   returns                          the ids that the worker still holds; a missing id was cancelled or recovered
--
-- Locks the rows of the jobs in id order (for no key update), as save_steps does. Wakes nobody.

create or replace function howdah.save_checkpoints(p_worker_id text, p_ids uuid[], p_attempts int[], p_data jsonb[]) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
    perform from howdah.jobs_live as j
    where j.id = any (p_ids) and j.worker_id = p_worker_id
    order by j.id for no key update;

    return query
    insert into howdah.job_steps as s (job_id, kind, name, number, attempt, started_at, ended_at, result)
    select c.id, 'checkpoint', 'checkpoint', 1, c.attempt, howdah.clock(), howdah.clock(), coalesce(c.data, 'null')
    from unnest(p_ids, p_attempts, p_data) as c (id, attempt, data)
    join howdah.jobs_live as j on j.id = any (array[c.id]) and j.worker_id = p_worker_id and j.attempts = c.attempt
    on conflict on constraint job_steps_pkey do update
    set attempt = excluded.attempt, started_at = excluded.started_at, ended_at = excluded.ended_at, result = excluded.result
    returning s.job_id;
end;
$$;
