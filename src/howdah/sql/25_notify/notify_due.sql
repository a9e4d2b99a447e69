-- notify_due · notify idle workers that a job waits for p_run_at
--
-- They then ask when the next job is due: see promote_due. There is no NOTIFY when no worker sleeps: a worker asks
-- by itself before it sleeps. There is none when an earlier job waits: the worker that promotes that job asks for
-- the next one. The earlier job must be due more than a second from now, so that this transaction has committed by then.
--
-- Locks nothing that outlives the statement. Wakes every idle worker, whatever its types.

create or replace function howdah.notify_due(p_run_at timestamptz) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
as $$
begin
    if p_run_at is not null and howdah.has_idle_worker() and not exists (
        select from howdah.jobs_live as j
        where j.worker_id is null and j.ready_at is null and (j.admission is null or j.admission = 'time' or j.admission = 'backoff')
          and j.run_at < p_run_at and j.run_at > howdah.clock() + interval '1 second'
    ) then
        perform pg_notify('howdah_due', '');
    end if;
end;
$$;
