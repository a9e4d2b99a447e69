-- broken · recover by age alone: a long job is given away while its worker beats
create or replace function howdah.recover_stale_jobs(p_timeout interval default '5 minutes')
returns table (id uuid, status text, worker_id text) language sql volatile as $$
    update howdah.jobs as j set status = 'pending', worker_id = null, claimed_at = null
    where j.status in ('claimed', 'running') and j.claimed_at < howdah.clock() - p_timeout
      and j.attempts < j.max_attempts
    returning j.id, 'pending', 'somebody';
$$;
