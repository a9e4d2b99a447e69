-- recent_failures · the newest failed jobs, the same errors together
--
--   p_job_type  one type alone; null: all
--   p_depth     how many failed jobs are read, the newest first
--   p_hours     how many hours the trend goes back
--   returns     one row per type and fingerprint of the error, the latest first
--               trend: how many, by how many hours ago; more: there are older ones that were not read
--
-- Reads the index jobs_finished_badly from its end. Locks nothing.

create or replace function howdah.recent_failures(p_job_type text default null, p_depth int default 2000, p_hours int default 24)
returns table (job_type text, fingerprint text, jobs bigint, first_at timestamptz, last_at timestamptz,
               example text, newest uuid, trend jsonb, more bool)
language sql stable
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
begin atomic
    with newest as (
        select j.id, j.job_type, j.status, coalesce(j.last_error, '') as error, j.completed_at
        from howdah.jobs_finished as j where j.status <> 'completed'
        order by j.id desc limit 10 * p_depth  -- cancelled jobs and other types lie between
    ), latest as materialized (
        select n.* from newest as n
        where n.status = 'failed' and (p_job_type is null or n.job_type = p_job_type)
        order by n.id desc limit p_depth + 1
    ), read_jobs as materialized (
        select l.*, howdah.fingerprint(l.error) as fingerprint,
               floor(extract(epoch from howdah.clock() - l.completed_at) / 3600)::int as hours_ago
        from (select * from latest limit p_depth) as l
    ), by_hour as (
        select l.job_type, l.fingerprint, l.hours_ago, count(*) as jobs, min(l.completed_at) as first_at,
               max(l.completed_at) as last_at, max(l.id::text)::uuid as newest
        from read_jobs as l group by 1, 2, 3
    )
    select g.job_type, g.fingerprint, sum(g.jobs)::bigint, min(g.first_at), max(g.last_at),
           (select l.error from read_jobs as l where l.id = max(g.newest::text)::uuid),
           max(g.newest::text)::uuid,
           coalesce(jsonb_object_agg(g.hours_ago, g.jobs) filter (where g.hours_ago < p_hours), '{}'),
           (select count(*) from latest) > p_depth
    from by_hour as g
    group by 1, 2
    order by 5 desc nulls last, 1, 2;
end;
