-- broken · enqueue keeps a job twice
create or replace function howdah.enqueue_many(p_jobs jsonb) returns setof uuid language sql volatile as $$
    insert into howdah.jobs (job_type, priority, data, max_attempts)
    select d.job_type, d.priority, d.data, d.max_attempts
    from jsonb_to_recordset(p_jobs || p_jobs) as d (job_type text, priority int, data jsonb, max_attempts int)
    returning id;
$$;
