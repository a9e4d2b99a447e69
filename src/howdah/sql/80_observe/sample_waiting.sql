-- sample_waiting · once a minute, record how many jobs are in line
--
-- Every worker calls it every few seconds; the first call of a minute counts, for all. One row for all types ('')
-- and one for each type that has jobs in line: a type without a row had none.
--
--   p_cap    how many jobs of a type are counted at most
--   returns  true: it counted; false: this minute was already counted, or another worker counts now
--
-- Locks (lock_space, 4) until the transaction ends. Wakes nobody. Counts like howdah.lane_counts, so give the
-- statement a timeout.

create or replace function howdah.sample_waiting(p_cap int default 100000) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_minute timestamptz := date_trunc('minute', howdah.clock());
begin
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 4) or exists (
        select from howdah.measure_history as h
        where h.job_type = '' and h.at = v_minute and h.waiting is not null
    ) then
        return false;
    end if;
    insert into howdah.measure_history (at, step, job_type, waiting, more)
    select v_minute, interval '1 minute', coalesce(l.job_type, ''),
           coalesce(sum(l.jobs), 0), coalesce(bool_or(l.more) or count(*) >= 1000, false)  -- it reads 1,000 lanes
    from howdah.lane_counts(p_cap) as l
    where l.jobs > 0 or l.more
    group by grouping sets ((l.job_type), ());
    return true;
end;
$$;
