-- deregister · a worker says goodbye: it beats no more, and nobody need wonder
--
-- Called when it holds nothing any longer. While it still holds something its row stays: others
-- notice that it is silent, and recover its jobs after its own `silent_after`.
--
-- Locks its own row of howdah.workers. Wakes nobody.

create or replace function howdah.deregister(p_worker_id text) returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
begin atomic
    delete from howdah.workers as w
    where w.id = p_worker_id
      and not exists (select from howdah.jobs_live as j where j.worker_id = p_worker_id);
end;
