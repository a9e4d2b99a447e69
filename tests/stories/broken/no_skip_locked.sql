-- broken · claim without locking what it found: two workers get the same job
create or replace function howdah.claim_job_batch(
    p_worker_id text, p_job_types text[], p_batch_size int default 10
) returns setof howdah.jobs language plpgsql volatile as $$
declare
    v_ids uuid[] := array(
        select id from howdah.jobs where status = 'pending' and job_type = any (p_job_types)
        order by priority desc, created_at, id limit p_batch_size);
begin
    return query
    with claimed as (
        update howdah.jobs as j
        set status = 'claimed', worker_id = p_worker_id, claimed_at = howdah.clock(), attempts = j.attempts + 1
        where j.id = any (v_ids) returning j.*
    ) select * from claimed order by priority desc, created_at, id;
end;
$$;
