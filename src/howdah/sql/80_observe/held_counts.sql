-- held_counts · how many jobs workers hold, by type and status; counts p_cap at most
--
-- Reads the index jobs_held, so jobs that were claimed a quarter of a second ago or later may be missing.
-- Locks nothing.

create or replace function howdah.held_counts(p_cap int default 10000)
returns table (job_type text, status text, jobs bigint)
language sql stable
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
begin atomic
    select h.job_type, h.status, count(*) from (
        select j.job_type, j.status::text from howdah.jobs_live as j where j.held_by is not null limit p_cap
    ) as h
    group by 1, 2;
end;
