-- upkeep · promote, recover and fold, by whoever comes first
--
-- Every worker calls this; one at a time does it and the others get no row. There is no
-- leader to die: the right ends with the transaction.
--
--   returns  what was done, and when the next waiting job is due
--
-- Locks (lock_space, 2) until the transaction ends; else as promote and recover.

create or replace function howdah.upkeep(p_timeout interval default '5 minutes')
returns table (promoted int, recovered int, failed int, silent_workers text[], next_due_in interval)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
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
    select count(*) filter (where r.status = 'pending'), count(*) filter (where r.status = 'failed'),
           array_agg(distinct r.worker_id)
    into recovered, failed, silent_workers from howdah.recover_stale_jobs(p_timeout) as r;
    if (select count(*) from (select from howdah.finished_counts limit 500) as counts) = 500 then
        perform howdah.fold_counts();
    end if;
    select j.run_at - howdah.clock() into next_due_in from howdah.jobs_live as j
    where j.worker_id is null and j.place is null
    order by j.run_at limit 1;
    return next;
end;
$$;
