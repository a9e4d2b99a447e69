-- save_steps · store steps that have ended, and sleeps that begin
--
--   p_worker_id, p_ids, p_attempts   the leases, one per step: a worker that has lost the job stores nothing
--   p_kinds, p_names, p_numbers      step or sleep, its name, and its number among those with this name
--   p_functions, p_results           what ran, and what it returned
--   p_began_ago                      how long ago it began
--   p_lasts                          of a sleep: how long it lasts from now
--   returns                          the positions in the arrays of the steps that are stored now; a missing one had a stale lease
--
-- A step that is stored already stays as it is. So a call that got no answer can be repeated.
--
-- Locks the rows of the jobs in id order (for no key update): nobody can take a job away before its step is stored. Wakes nobody.

create or replace function howdah.save_steps(
    p_worker_id  text,
    p_ids        uuid[],      -- one per step, so an id may occur several times
    p_attempts   int[],
    p_kinds      text[],
    p_names      text[],
    p_numbers    int[],
    p_functions  text[]      default null,
    p_results    jsonb[]     default null,
    p_began_ago  interval[]  default null,
    p_lasts      interval[]  default null
) returns setof int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'  -- a day has 24 hours
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_now  timestamptz := howdah.clock();
begin
    if exists (select from unnest(p_kinds) as k where k is null or k not in ('step', 'sleep')) then
        raise exception using errcode = '22023', message = 'p_kinds must be step or sleep; await_signals stores a wait for a signal';
    end if;
    perform from howdah.jobs_live as j
    where j.id = any (p_ids) and j.worker_id = p_worker_id
    order by j.id for no key update;

    insert into howdah.job_steps (job_id, kind, name, number, function, attempt, started_at, until, ended_at, result)
    select s.id, s.kind, s.name, s.number, s.function, s.attempt, v_now - coalesce(s.began_ago, '0'),
           case s.kind when 'sleep' then howdah.step_until(v_now, s.lasts) end, case s.kind when 'step' then v_now end, s.result
    from unnest(p_ids, p_attempts, p_kinds, p_names, p_numbers, p_functions, p_results, p_began_ago, p_lasts)
             as s (id, attempt, kind, name, number, function, result, began_ago, lasts)
    join howdah.jobs_live as j on j.id = any (array[s.id]) and j.worker_id = p_worker_id and j.attempts = s.attempt
    on conflict do nothing;

    return query
    select l.nth::int from unnest(p_ids, p_attempts) with ordinality as l (id, attempt, nth)
    join howdah.jobs_live as j on j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt;
end;
$$;
