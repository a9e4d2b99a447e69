-- broken · recover puts a job back after its last attempt: a deadly job goes round for ever
create or replace function howdah.recover_stale_jobs(p_timeout interval default '5 minutes')
returns table (id uuid, status text, worker_id text) language sql volatile as $$
    update howdah.jobs as j set status = 'pending', worker_id = null, claimed_at = null
    from howdah.workers as w
    where j.status in ('claimed', 'running') and w.id = j.worker_id
      and w.beat_at < howdah.clock() - w.silent_after
    returning j.id, 'pending', 'somebody';
$$;
