-- fold_measures · add up old measures, so that they stay few
--
-- What is older than two minutes becomes one row per type and minute; what is older than the
-- option keep_measures becomes one row per type. Nothing is lost from the sums.
--
--   returns  how many rows became fewer; null when another worker is at it
--
-- Locks (lock_space, 4) until the transaction ends. Wakes nobody.

create or replace function howdah.fold_measures() returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_fresh   timestamptz := howdah.clock() - interval '2 minutes';
    v_kept    timestamptz := date_trunc('minute', howdah.clock()
                                 - coalesce(howdah.option('keep_measures')::interval, '2 hours'));
    v_folded  int;
begin
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 4) then
        return null;
    end if;
    with taken as (
        delete from howdah.measures as m
        where (m.at < v_fresh and m.worker_id <> '')
           or (m.at > '-infinity' and m.at < v_kept)
           or (m.at = '-infinity'
               and exists (select from howdah.measures as o where o.at > '-infinity' and o.at < v_kept))
        returning case when m.at < v_kept then '-infinity' else date_trunc('minute', m.at) end as minute, m.*
    ), counted as (
        select t.minute, t.job_type, count(*) as rows, sum(t.completed) as completed, sum(t.failed) as failed,
               sum(t.retried) as retried, sum(t.cancelled) as cancelled, sum(t.released) as released,
               sum(t.pickup_seconds) as pickup_seconds, sum(t.run_seconds) as run_seconds
        from taken as t group by t.minute, t.job_type
    ), folded as (
        insert into howdah.measures (
            at, worker_id, job_type, completed, failed, retried, cancelled, released,
            pickup, run, pickup_seconds, run_seconds)
        select c.minute, '', c.job_type, c.completed, c.failed, c.retried, c.cancelled, c.released,
               array(select sum(cell.jobs)::bigint from taken as t
                     cross join lateral unnest(t.pickup) with ordinality as cell (jobs, nth)
                     where t.minute = c.minute and t.job_type = c.job_type group by cell.nth order by cell.nth),
               array(select sum(cell.jobs)::bigint from taken as t
                     cross join lateral unnest(t.run) with ordinality as cell (jobs, nth)
                     where t.minute = c.minute and t.job_type = c.job_type group by cell.nth order by cell.nth),
               c.pickup_seconds, c.run_seconds
        from counted as c
        returning 1
    )
    select coalesce(sum(c.rows), 0) - (select count(*) from folded) into v_folded from counted as c;
    delete from howdah.drains where asked_at < howdah.clock() - interval '1 hour';  -- nobody heard
    return v_folded;
end;
$$;
