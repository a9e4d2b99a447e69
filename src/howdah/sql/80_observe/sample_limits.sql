-- sample_limits · several times a minute, record how the named limits are used
--
-- Every worker calls it every few seconds; the first call after 9 seconds counts, for all. One row per minute for all limits
-- (''), and one for each limit whose slots are held or for which jobs wait: a limit without a row had none.
--
--   p_cap    how many jobs of a limit are counted at most
--   returns  true: it counted; false: there is no limit, they were just counted, or another worker counts now
--
-- Locks (lock_space, 4) until the transaction ends. Wakes nobody. Counts like howdah.limit_counts, so give the
-- statement a timeout.

create or replace function howdah.sample_limits(p_cap int default 10000) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now     timestamptz := howdah.clock();
    v_minute  timestamptz := date_trunc('minute', v_now);
begin
    if not exists (select from howdah.limits) or not pg_try_advisory_xact_lock(howdah.lock_space(), 4) or exists (
        select from howdah.limit_history as h
        where h.name = '' and h.at >= v_minute - interval '1 minute' and h.at <= v_minute
          and h.counted_at > v_now - interval '9 seconds' and h.counted_at <= v_now
    ) then
        return false;
    end if;
    insert into howdah.limit_history as h (name, at, step, samples, counted_at, admitted, admitted_sum, waiting, more)
    select '', v_minute, interval '1 minute', 1, v_now, 0, 0, 0, false
    union all
    select c.name, v_minute, interval '1 minute', 0, null, c.admitted, c.admitted, c.waiting, c.more_admitted or c.more_waiting
    from howdah.limit_counts(p_cap) as c
    where c.admitted > 0 or c.waiting > 0
    on conflict (name, at, step) do update
    set samples = h.samples + excluded.samples, counted_at = excluded.counted_at,
        admitted = greatest(h.admitted, excluded.admitted), admitted_sum = h.admitted_sum + excluded.admitted_sum,
        waiting = greatest(h.waiting, excluded.waiting), more = h.more or excluded.more;
    return true;
end;
$$;
