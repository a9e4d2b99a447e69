-- upkeep · expire, promote, recover, compact_counts, fit_fair_widths and admit, in one session at a time
--
-- Every worker calls this. One session at a time does it and the others get no row. There is no
-- leader that could fail: the lock ends with the transaction.
--
--   p_timeout    see recover_stale_jobs
--   p_worker_id  the worker that asks. If it was itself disconnected a short time ago, it recovers nothing:
--                the others were perhaps disconnected too, and need time to beat again. The database
--                decides this, because after a network failure delayed messages arrive in any order, also an old
--                beat and an old upkeep
--   returns      what was done, how long until the next waiting job or schedule is due, and until admit has something to do again;
--                whether a schedule is due, which the worker then fires
--
-- Locks (lock_space, 2) until the transaction ends; else as promote, recover and admit.

create or replace function howdah.upkeep(
    p_timeout    interval  default '5 minutes',
    p_worker_id  text      default null
) returns table (promoted int, recovered int, failed int, silent_workers text[], next_due_in interval, expired int,
               next_look interval, schedules_due bool)
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
    select count(*) into expired from howdah.expire(10000);
    select count(*) into promoted from howdah.promote();
    if p_worker_id is null or exists (
        select from howdah.workers as us
        where us.id = p_worker_id and us.beat_at >= howdah.clock() - us.silent_after
          and us.steady_since <= howdah.clock() - coalesce((
              select max(w.silent_after) from howdah.workers as w
              where w.beat_at < howdah.clock() - w.silent_after
                and (w.given_up_at is null
                     or exists (select from howdah.jobs_live as j where j.held_by = w.id))), '0')
    ) then
        select count(*) filter (where r.status = 'pending'), count(*) filter (where r.status = 'failed'),
               array_agg(distinct r.worker_id)
        into recovered, failed, silent_workers from howdah.recover_stale_jobs(p_timeout) as r;
    else
        recovered := 0;
        failed := 0;
    end if;
    if (select count(*) from (select from howdah.finished_counts limit 500) as counts) = 500 then
        perform howdah.compact_counts();
    end if;
    next_due_in := howdah.next_due_in();
    schedules_due := coalesce(next_due_in <= '0' and howdah.next_firing_in() <= '0', false);
    perform howdah.fit_fair_widths();
    select a.next_look into next_look from howdah.admit() as a;
    return next;
end;
$$;
