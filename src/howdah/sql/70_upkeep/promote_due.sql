-- promote_due · promote, and return when the next waiting job is due
--
-- For a worker that was notified of a waiting job, or whose next job is due now. One session at a time does it, and the
-- others get no row. All idle workers are notified when the next job is due, so they need not ask, and any of them
-- can continue. If no job waits, there is no NOTIFY.
--
--   p_worker_id  the worker that asks; it ignores its own NOTIFY
--   returns      how many jobs were promoted, and how long until the next one is due
--
-- Locks (lock_space, 2) until the transaction ends; else as promote.

create or replace function howdah.promote_due(p_worker_id text)
returns table (promoted int, next_due_in interval)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
begin
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 2) then
        return;
    end if;
    select count(*) into promoted from howdah.promote();
    next_due_in := howdah.next_due_in();
    if (promoted > 0 or next_due_in is not null) and howdah.has_idle_worker() then
        perform pg_notify('howdah_due', json_build_array(
            round(extract(epoch from next_due_in) * 1000), left(p_worker_id, 200))::text);
    end if;
    return next;
end;
$$;
