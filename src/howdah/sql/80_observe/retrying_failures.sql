-- retrying_failures · jobs that failed and are tried again, the same errors together
--
-- These are live jobs whose last attempt failed: they wait for the next attempt, or run it.
--
--   p_job_type  one type alone; null: all
--   p_depth     how many such jobs are read
--   returns     one row per type and fingerprint of the error
--               ended: when the last attempt of each ended, from the error; left as text because
--               a plain INSERT may contain anything there. next_at: when the first of those that
--               wait is due. more: there are more jobs than were read
--
-- Reads 10 * p_depth jobs at most of each kind: waiting for their time, held by workers, and the
-- newest of all. Locks nothing.

create or replace function howdah.retrying_failures(p_job_type text default null, p_depth int default 2000)
returns table (job_type text, fingerprint text, jobs bigint, example text, newest uuid, next_at timestamptz,
               attempts int, ended text[], more bool)
language sql stable
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
begin atomic
    with waiting as (
        select j.id from howdah.jobs_live as j where j.ready_at is null and j.worker_id is null and (j.admission is null or j.admission = 'time' or j.admission = 'backoff')
        order by j.run_at limit 10 * p_depth
    ), held as (
        select j.id from howdah.jobs_live as j where j.held_by is not null limit 10 * p_depth
    ), newest as (
        select j.id from howdah.jobs_live as j order by j.id desc limit 10 * p_depth
    ), latest as materialized (
        select j.id, j.job_type, j.last_error, j.attempts, j.errors,
               case when j.worker_id is null and j.ready_at is null then j.run_at end as next_at
        from howdah.jobs_live as j
        where j.id in (select id from waiting union select id from held union select id from newest)
          and j.last_error is not null and (p_job_type is null or j.job_type = p_job_type)
        order by j.id desc limit p_depth + 1
    ), read_jobs as materialized (
        select l.*, howdah.fingerprint(l.last_error) as fingerprint,
               left(l.errors -> -1 ->> 'ended_at', 40) as ended
        from (select * from latest limit p_depth) as l
    )
    select g.job_type, g.fingerprint, count(*),
           (select l.last_error from read_jobs as l where l.id = max(g.id::text)::uuid),
           max(g.id::text)::uuid, min(g.next_at), max(g.attempts),
           coalesce(array_agg(g.ended) filter (where g.ended is not null), '{}'),
           (select count(*) from latest) > p_depth
               or (select count(*) from newest) = 10 * p_depth
    from read_jobs as g
    group by 1, 2
    order by 1, 2;
end;
