-- promote_due · promote, and return when the next waiting job or schedule is due
--
-- For a worker that was notified of a waiting job, or whose next job is due now. One session at a time does it, and the
-- others get no row. All idle workers are notified when the next job is due, so they need not ask, and any of them
-- can continue. If no job waits, there is no NOTIFY.
--
--   p_worker_id  the worker that asks; it ignores its own NOTIFY
--   p_since      the as_of of this worker's last call: see admit
--   returns      how many jobs were promoted, and how long until the next one is due; for the next call as_of, and how long
--                until admit has something to do again; whether a schedule is due, which the worker then fires
--
-- Locks (lock_space, 2) until the transaction ends; else as promote and admit.

create or replace function howdah.promote_due(p_worker_id text, p_since text default null)
returns table (promoted int, next_due_in interval, as_of text, next_look interval, schedules_due bool)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_now  text := pg_current_snapshot();  -- before this transaction writes
begin
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 2) then
        return;
    end if;
    select count(*) into promoted from howdah.promote();
    next_due_in := howdah.next_due_in();
    schedules_due := coalesce(next_due_in <= '0' and howdah.next_firing_in() <= '0', false);
    select a.as_of, a.next_look into as_of, next_look from howdah.admit(p_since, p_now => v_now) as a;
    if next_look is not null then  -- this worker looks again; a fifth of a second late at most
        perform setval('howdah.next_look_by', (extract(epoch from clock_timestamp() + next_look) * 1000 + 200)::bigint);
    end if;
    if (promoted > 0 or next_due_in is not null) and howdah.has_idle_worker() then
        perform pg_notify('howdah_due', json_build_array(
            round(extract(epoch from next_due_in) * 1000), left(p_worker_id, 200))::text);
    end if;
    return next;
end;
$$;
