-- compact_measures · add up old measures, so that their rows stay few, and keep their history
--
-- A minute that ended more than a minute ago becomes one row per type; what is older than the option
-- keep_measures becomes one row per type. The sums stay the same.
--
-- The same minutes go into howdah.measure_history, once per type and once for all types (''). A minute in
-- which a worker was alive and no attempt ended gets only a row for all types: the queue was idle. A minute
-- without a row is unknown. There, what is older than an hour is compacted by 15 minutes, after a day by 2
-- hours, and after the option keep_measure_history it is deleted. So is the history of named limits.
--
--   returns  by how many rows howdah.measures became smaller; null while another worker does it
--
-- Locks (lock_space, 4) until the transaction ends. Wakes nobody.

create or replace function howdah.compact_measures() returns int
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now     timestamptz := howdah.clock();
    v_fresh   timestamptz := date_trunc('minute', v_now - interval '1 minute');
    v_kept    timestamptz := date_trunc('minute', v_now
                                 - coalesce(howdah.option('keep_measures')::interval, '2 hours'));
    v_deleted_before  timestamptz := v_now - coalesce(howdah.option('keep_measure_history')::interval, '8 days');
    v_minutes int;
    v_older   int;
    v_step    record;
begin
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 4) then
        return null;
    end if;

    -- what workers wrote every few seconds: by the minute
    with taken as (
        delete from howdah.measures as m where m.at < v_fresh and m.worker_id <> ''
        returning date_trunc('minute', m.at) as minute, m.job_type::text as type, m.*
    ), of_types as (
        select t.minute, t.type, count(*) as rows,
               sum(t.completed) as completed, sum(t.failed) as failed, sum(t.retried) as retried,
               sum(t.cancelled) as cancelled, sum(t.released) as released,
               sum(t.pickup_seconds) as pickup_seconds, sum(t.run_seconds) as run_seconds
        from taken as t group by t.minute, t.type
    ), counted as (
        select * from of_types
        union all
        select o.minute, '', sum(o.rows), sum(o.completed), sum(o.failed), sum(o.retried), sum(o.cancelled),
               sum(o.released), sum(o.pickup_seconds), sum(o.run_seconds)
        from of_types as o group by o.minute
    ), cells_of_types as (
        select t.minute, t.type, cell.nth, sum(cell.pickup)::bigint as pickup, sum(cell.run)::bigint as run
        from taken as t cross join lateral unnest(t.pickup, t.run) with ordinality as cell (pickup, run, nth)
        group by t.minute, t.type, cell.nth
    ), cells as (
        select p.minute, p.type, array_agg(p.pickup order by p.nth) filter (where p.pickup is not null) as pickup,
               array_agg(p.run order by p.nth) filter (where p.run is not null) as run
        from (select * from cells_of_types
              union all
              select c.minute, '', c.nth, sum(c.pickup)::bigint, sum(c.run)::bigint
              from cells_of_types as c group by c.minute, c.nth) as p
        group by p.minute, p.type
    ), summed as (
        select c.*, coalesce(k.pickup, '{}') as pickup, coalesce(k.run, '{}') as run
        from counted as c left join cells as k on k.minute = c.minute and k.type = c.type
    ), compacted as (
        insert into howdah.measures (
            at, worker_id, job_type, completed, failed, retried, cancelled, released,
            pickup, run, pickup_seconds, run_seconds)
        select s.minute, '', s.type, s.completed, s.failed, s.retried, s.cancelled, s.released,
               s.pickup, s.run, s.pickup_seconds, s.run_seconds
        from summed as s where s.type <> ''
        returning 1
    ), kept as (
        insert into howdah.measure_history (
            at, step, job_type, minutes, completed, failed, retried, pickup, run, pickup_seconds, run_seconds)
        select s.minute, interval '1 minute', s.type,
               (s.type = '' and not exists (
                   select from howdah.measure_history as h
                   where h.job_type = '' and h.at = s.minute and h.minutes > 0))::int,
               s.completed, s.failed, s.retried, s.pickup, s.run, s.pickup_seconds, s.run_seconds
        from summed as s where s.minute > v_deleted_before
    )
    select coalesce(sum(c.rows) filter (where c.type <> ''), 0) - (select count(*) from compacted)
    into v_minutes from counted as c;

    -- minutes past the option keep_measures: one row per type
    with taken as (
        delete from howdah.measures as m
        where m.worker_id = '' and m.at < v_kept
          and exists (select from howdah.measures as o
                      where o.worker_id = '' and o.at > '-infinity' and o.at < v_kept)
        returning m.*
    ), counted as (
        select t.job_type, count(*) as rows, sum(t.completed) as completed, sum(t.failed) as failed,
               sum(t.retried) as retried, sum(t.cancelled) as cancelled, sum(t.released) as released,
               sum(t.pickup_seconds) as pickup_seconds, sum(t.run_seconds) as run_seconds
        from taken as t group by t.job_type
    ), cells as (
        select p.job_type, array_agg(p.pickup order by p.nth) filter (where p.pickup is not null) as pickup,
               array_agg(p.run order by p.nth) filter (where p.run is not null) as run
        from (select t.job_type, cell.nth, sum(cell.pickup)::bigint as pickup, sum(cell.run)::bigint as run
              from taken as t cross join lateral unnest(t.pickup, t.run) with ordinality as cell (pickup, run, nth)
              group by t.job_type, cell.nth) as p
        group by p.job_type
    ), compacted as (
        insert into howdah.measures (
            at, worker_id, job_type, completed, failed, retried, cancelled, released,
            pickup, run, pickup_seconds, run_seconds)
        select '-infinity', '', c.job_type, c.completed, c.failed, c.retried, c.cancelled, c.released,
               coalesce(k.pickup, '{}'), coalesce(k.run, '{}'), c.pickup_seconds, c.run_seconds
        from counted as c left join cells as k on k.job_type = c.job_type
        returning 1
    )
    select coalesce(sum(c.rows), 0) - (select count(*) from compacted) into v_older from counted as c;

    -- minutes in which nothing ended and a worker was alive
    insert into howdah.measure_history (at, step, job_type, minutes)
    select m.minute, interval '1 minute', '', 1
    from generate_series(v_fresh - interval '10 minutes', v_fresh - interval '1 minute', interval '1 minute') as m (minute)
    where exists (select from howdah.workers as w where w.started_at < m.minute + interval '1 minute' and w.beat_at >= m.minute)
      and not exists (select from howdah.measure_history as h
                      where h.job_type = '' and h.at = m.minute and h.minutes > 0);

    -- rows that are finer than a chart of their age needs
    for v_step in
        select * from (values
            (interval '15 minutes', v_now - interval '65 minutes', v_now - interval '25 hours'),
            (interval '2 hours', v_now - interval '25 hours', v_deleted_before)) as s (step, before, after)
    loop
        v_step.before := date_bin(v_step.step, v_step.before, '2000-01-01 00:00Z');
        continue when not exists (
            select from howdah.measure_history as h
            where h.job_type = '' and h.at < v_step.before and h.at >= v_step.after - v_step.step
              and h.step < v_step.step);
        with taken as (
            delete from howdah.measure_history as h where h.at < v_step.before and h.step < v_step.step
            returning date_bin(v_step.step, h.at, '2000-01-01 00:00Z') as bin, h.*
        ), counted as (
            select t.bin, t.job_type, sum(t.minutes) as minutes, sum(t.completed) as completed,
                   sum(t.failed) as failed, sum(t.retried) as retried, sum(t.pickup_seconds) as pickup_seconds,
                   sum(t.run_seconds) as run_seconds, max(t.waiting) as waiting, bool_or(t.more) as more
            from taken as t group by t.bin, t.job_type
        ), cells as (
            select p.bin, p.job_type, array_agg(p.pickup order by p.nth) filter (where p.pickup is not null) as pickup,
                   array_agg(p.run order by p.nth) filter (where p.run is not null) as run
            from (select t.bin, t.job_type, cell.nth, sum(cell.pickup)::bigint as pickup, sum(cell.run)::bigint as run
                  from taken as t cross join lateral unnest(t.pickup, t.run) with ordinality as cell (pickup, run, nth)
                  group by t.bin, t.job_type, cell.nth) as p
            group by p.bin, p.job_type
        )
        insert into howdah.measure_history (
            at, step, job_type, minutes, completed, failed, retried,
            pickup, run, pickup_seconds, run_seconds, waiting, more)
        select c.bin, v_step.step, c.job_type, c.minutes, c.completed, c.failed, c.retried,
               coalesce(k.pickup, '{}'), coalesce(k.run, '{}'), c.pickup_seconds, c.run_seconds, c.waiting, c.more
        from counted as c left join cells as k on k.bin = c.bin and k.job_type = c.job_type;
    end loop;
    if exists (select from howdah.measure_history as h where h.job_type = '' and h.at < v_deleted_before - interval '2 hours') then
        delete from howdah.measure_history as h where h.at < v_deleted_before;
    end if;

    perform howdah.compact_limit_history();
    delete from howdah.drain_requests where requested_at < howdah.clock() - interval '1 hour';  -- the worker never asked
    return v_minutes + v_older;
end;
$$;
