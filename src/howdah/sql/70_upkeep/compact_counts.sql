-- compact_counts · add up the rows of finished_counts, so that they stay few

create or replace function howdah.compact_counts() returns void
language sql volatile security definer
begin atomic
    with taken as (
        delete from howdah.finished_counts returning day, job_type, status, jobs
    )
    insert into howdah.finished_counts (day, job_type, status, jobs)
    select day, job_type, status, sum(jobs) from taken
    group by day, job_type, status having sum(jobs) <> 0;
end;
