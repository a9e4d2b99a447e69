-- take_requeued_keys · take the unique keys of jobs that are about to be requeued
--
--   returns  the ids without those of jobs whose key another job holds
--
-- Of several jobs with one key, the one that ended last gets it. Called by requeue. Locks as take_unique_key does, in the order
-- of the keys.

create or replace function howdah.take_requeued_keys(p_ids uuid[]) returns uuid[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_job   record;
    v_taken text[];  -- type and key of the last job
    v_left  uuid[] := p_ids;
begin
    for v_job in
        select j.id, j.job_type, j.unique_key from howdah.jobs_finished as j
        where j.id = any (p_ids) and j.unique_key is not null and j.unique_until is distinct from 'time'
          and j.status in ('failed', 'cancelled')
        order by j.unique_key, j.job_type, j.finished_on desc, j.completed_at desc nulls last, j.id desc
    loop
        if array[v_job.job_type::text, v_job.unique_key::text] = v_taken
           or howdah.take_unique_key(v_job.job_type, v_job.unique_key, v_job.id) is not null then
            v_left := array_remove(v_left, v_job.id);
        end if;
        v_taken := array[v_job.job_type::text, v_job.unique_key::text];
    end loop;
    return v_left;
end;
$$;
