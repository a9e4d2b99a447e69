-- await_signals · take signals that jobs wait for, or begin to wait
--
-- A wait takes the oldest signal with its name that no wait has taken. If there is none, the wait is stored: from now on `signal` knows that the
-- job waits. A wait whose timeout is over ends as timed out, for good: a signal that comes later is for the next wait.
--
--   p_worker_id, p_ids, p_attempts   the leases, one per wait
--   p_names, p_numbers               the signal, and the number of the wait among those for this name
--   p_timeouts                       how long to wait from now; null: for ever. Only the first call for a wait decides
--   returns                          for each wait that the worker may ask for, its position in the arrays, whether it has ended, whether
--                                    it timed out, the data of its signal, and how long until it times out. A missing wait had a
--                                    stale lease
--
-- Locks the rows of the jobs in id order (for no key update), as save_steps does. Wakes nobody.

create or replace function howdah.await_signals(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_names      text[],
    p_numbers    int[],
    p_timeouts   interval[]  default null
) returns table (nth int, ended bool, timed_out bool, data jsonb, ends_in interval)
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
    v_now   timestamptz := howdah.clock();
    v_wait  record;
    v_step  howdah.job_steps;
begin
    perform from howdah.jobs_live as j
    where j.id = any (p_ids) and j.worker_id = p_worker_id
    order by j.id for no key update;

    for v_wait in
        select w.* from unnest(p_ids, p_attempts, p_names, p_numbers, p_timeouts) with ordinality
                            as w (id, attempt, name, number, timeout, nth)
        join howdah.jobs_live as j on j.id = any (array[w.id]) and j.worker_id = p_worker_id and j.attempts = w.attempt
        order by w.id, w.name, w.number
    loop
        insert into howdah.job_steps (job_id, kind, name, number, attempt, started_at, until)
        values (v_wait.id, 'signal', v_wait.name, v_wait.number, v_wait.attempt, v_now, howdah.step_until(v_now, v_wait.timeout))
        on conflict do nothing;
        select s.* into v_step from howdah.job_steps as s
        where s.job_id = v_wait.id and s.kind = 'signal' and s.name = v_wait.name and s.number = v_wait.number;
        if v_step.ended_at is null then
            update howdah.job_signals as g set taken_at = v_now
            where g.job_id = v_wait.id and g.name = v_wait.name and g.number = (
                select o.number from howdah.job_signals as o
                where o.job_id = v_wait.id and o.name = v_wait.name and o.taken_at is null
                order by o.number limit 1)
            returning g.data into v_step.result;
            if found then
                v_step.ended_at := v_now;
            elsif v_step.until <= v_now then
                v_step.ended_at := v_now;
                v_step.timed_out := true;
            end if;
            if v_step.ended_at is not null then
                update howdah.job_steps as s
                set ended_at = v_step.ended_at, timed_out = v_step.timed_out, result = v_step.result
                where s.job_id = v_wait.id and s.kind = 'signal' and s.name = v_wait.name and s.number = v_wait.number;
            end if;
        end if;
        nth := v_wait.nth;
        ended := v_step.ended_at is not null;
        timed_out := v_step.timed_out;
        data := v_step.result;
        ends_in := v_step.until - v_now;
        return next;
    end loop;
end;
$$;
