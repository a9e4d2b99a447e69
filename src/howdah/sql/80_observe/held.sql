-- held · how many jobs are in workers' hands, by type and state; counts p_cap at most

create or replace function howdah.held(p_cap int default 10000)
returns table (job_type text, status text, jobs bigint)
language sql stable
set enable_seqscan = off
set jit = off
begin atomic
    select h.job_type, h.status, count(*) from (
        select j.job_type, j.status::text from howdah.jobs_live as j where j.worker_id is not null limit p_cap
    ) as h
    group by 1, 2;
end;

-- The same for jobs that wait for their time: how many, how many of them after a failed
-- attempt, when the first is due, and how many were handed back because nobody could read them.
create or replace function howdah.scheduled(p_cap int default 10000)
returns table (job_type text, jobs bigint, retrying bigint, first_due timestamptz, unread bigint)
language sql stable
set enable_seqscan = off
set jit = off
begin atomic
    select s.job_type, count(*), count(*) filter (where s.attempts > 0), min(s.run_at),
           count(*) filter (where s.unread_since is not null)
    from (
        select j.job_type, j.attempts, j.run_at, j.unread_since from howdah.jobs_live as j
        where j.worker_id is null and j.place is null
        order by j.run_at limit p_cap
    ) as s
    group by 1;
end;
