-- notify_due · tell idle workers that a job waits for p_run_at
--
-- They look then when the next job is due (see promote_due). Where nobody sleeps the NOTIFY is spared: who falls
-- asleep looks by itself. It is spared too where an earlier job waits: whoever promotes that one looks for
-- the next. That job must wait for another second, so that this transaction has committed before.
--
-- Locks nothing that outlives the statement. Wakes every idle worker, whatever its types.

create or replace function howdah.notify_due(p_run_at timestamptz) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
    if p_run_at is not null and howdah.has_idle_worker() and not exists (
        select from howdah.jobs_live as j
        where j.worker_id is null and j.ready_at is null
          and j.run_at < p_run_at and j.run_at > howdah.clock() + interval '1 second'
    ) then
        perform pg_notify('howdah_due', '');
    end if;
end;
$$;
