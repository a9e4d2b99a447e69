-- scheduled_counts · how many jobs wait for their time, by type; counts p_cap at most
--
--   returns  retrying: how many of them wait after a failed attempt; first_due: when the first is due;
--            unread: how many were handed back because no worker could read them
--
-- Locks nothing.

create or replace function howdah.scheduled_counts(p_cap int default 10000)
returns table (job_type text, jobs bigint, retrying bigint, first_due timestamptz, unread bigint)
language sql stable
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
begin atomic
    select s.job_type, count(*), count(*) filter (where s.attempts > 0), min(s.run_at),
           count(*) filter (where s.unread_since is not null)
    from (
        select j.job_type, j.attempts, j.run_at, j.unread_since from howdah.jobs_live as j
        where j.worker_id is null and j.ready_at is null and (j.admission is null or j.admission = 'time' or j.admission = 'backoff')
        order by j.run_at limit p_cap
    ) as s
    group by 1;
end;
