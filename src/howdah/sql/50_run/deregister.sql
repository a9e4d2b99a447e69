-- deregister · a worker ends: delete its row
--
-- Called when it knows that it holds no job. While jobs_held names it, its row stays: other workers
-- see that it is silent and recover its jobs after its `silent_after`.
--
-- Locks its own row of howdah.workers. Wakes nobody.

create or replace function howdah.deregister(p_worker_id text) returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
begin atomic
    delete from howdah.workers as w
    where w.id = p_worker_id
      and not exists (select from howdah.jobs_live as j where j.held_by = p_worker_id);
end;
