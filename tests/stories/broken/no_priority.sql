-- broken · claim the lowest priority first
create or replace function howdah.claim_job_batch(
    p_worker_id text, p_job_types text[], p_batch_size int default 10
) returns setof howdah.jobs language sql volatile as $$
    with claimed as (
        update howdah.jobs as j
        set status = 'claimed', worker_id = p_worker_id, claimed_at = howdah.clock(), attempts = j.attempts + 1
        where j.id = any (array(
            select id from howdah.jobs_live where status = 'pending' and job_type = any (p_job_types)
            order by priority, created_at, id limit p_batch_size for update skip locked))
        returning j.*
    ) select * from claimed order by priority desc, created_at, id;
$$;
