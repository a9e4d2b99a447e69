-- measured · measures since an instant: how attempts ended, waited and ran
--
--   p_since  '-infinity': everything; these sums never decrease
--   returns  one row per job type; the histograms as in howdah.measures
--
-- Reads one row per type and minute, never the history. Locks nothing.

create or replace function howdah.measured(p_since timestamptz default '-infinity')
returns table (job_type text, completed bigint, failed bigint, retried bigint, cancelled bigint, released bigint,
               pickup bigint[], run bigint[], pickup_seconds double precision, run_seconds double precision)
language sql stable
begin atomic
    with recent as materialized (
        select * from howdah.measures as m where m.at >= p_since
    ), pickups as (
        select p.job_type, array_agg(p.jobs order by p.nth) as cells
        from (select r.job_type, cell.nth, sum(cell.jobs)::bigint as jobs
              from recent as r cross join lateral unnest(r.pickup) with ordinality as cell (jobs, nth)
              group by 1, 2) as p
        group by 1
    ), runs as (
        select p.job_type, array_agg(p.jobs order by p.nth) as cells
        from (select r.job_type, cell.nth, sum(cell.jobs)::bigint as jobs
              from recent as r cross join lateral unnest(r.run) with ordinality as cell (jobs, nth)
              group by 1, 2) as p
        group by 1
    ), counted as (
        select r.job_type, sum(r.completed)::bigint as completed, sum(r.failed)::bigint as failed,
               sum(r.retried)::bigint as retried, sum(r.cancelled)::bigint as cancelled,
               sum(r.released)::bigint as released,
               sum(r.pickup_seconds) as pickup_seconds, sum(r.run_seconds) as run_seconds
        from recent as r group by 1
    )
    select c.job_type, c.completed, c.failed, c.retried, c.cancelled, c.released,
           coalesce(p.cells, '{}'), coalesce(r.cells, '{}'), c.pickup_seconds, c.run_seconds
    from counted as c
    left join pickups as p on p.job_type = c.job_type
    left join runs as r on r.job_type = c.job_type
    order by c.job_type;
end;

-- The same counts minute by minute, for a trend line. `at` is when the minute began.
create or replace function howdah.measured_by_minute(p_since timestamptz)
returns table (job_type text, at timestamptz, completed bigint, failed bigint, retried bigint)
language sql stable
begin atomic
    select m.job_type, date_trunc('minute', m.at), sum(m.completed)::bigint, sum(m.failed)::bigint, sum(m.retried)::bigint
    from howdah.measures as m
    where m.at >= p_since and m.at > '-infinity'
    group by 1, 2 order by 1, 2;
end;
