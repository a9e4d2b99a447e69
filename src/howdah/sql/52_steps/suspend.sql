-- suspend · claimed, running → pending, the attempt not counted, until the job can go on
--
-- Puts back jobs that sleep or wait for signals. Such a job waits for its time, as a delayed one: until the first of its sleeps
-- ends or the first of its waits times out. `signal` puts it into the line before that. If a signal that it waits for has come already, it
-- is in line at once.
--
--   p_worker_id, p_ids, p_attempts   the leases
--   p_blocked                        what each job waits for, as stored in job_steps: [["sleep", "sleep", 1], ["signal", "approved", 1]]
--   returns                          the ids this call moved; a missing id was stale
--
-- No signal is lost: `signal` locks the row of the job (for key share) before it writes, and this function locks it (for update) before
-- it looks. Whoever is second sees what the first has done.
--
-- Locks the rows in id order; waits for the end of transactions that have sent a signal to one of these jobs. Wakes as release does.

create or replace function howdah.suspend(p_worker_id text, p_ids uuid[], p_attempts int[], p_blocked jsonb[]) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set timezone = 'UTC'  -- a day has 24 hours, so run_at is exactly the `until` of a step
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_now     timestamptz := howdah.clock();
    v_delays  interval[];
begin
    perform from howdah.jobs_live as j
    where j.id = any (p_ids) and j.worker_id = p_worker_id
    order by j.id for update;

    -- a statement of its own: it sees what was committed before the locks were granted
    v_delays := array(
        select case when bool_or(blocked.has_signal) then '0' else greatest(min(blocked.until) - v_now, '0') end
        from unnest(p_ids, p_blocked) with ordinality as l (id, steps, nth)
        left join lateral (
            select s.until,
                   s.kind = 'signal' and exists (
                       select from howdah.job_signals as g
                       where g.job_id = s.job_id and g.name = s.name and g.taken_at is null) as has_signal
            from jsonb_array_elements(l.steps) as b
            join howdah.job_steps as s
                on s.job_id = l.id and s.kind = b ->> 0 and s.name = b ->> 1 and s.number = (b ->> 2)::int and s.ended_at is null
        ) as blocked on true
        group by l.nth order by l.nth);
    return query select howdah.release(p_worker_id, p_ids, p_attempts, v_delays);
end;
$$;
