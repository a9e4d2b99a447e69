-- leave · a worker says goodbye: it beats no more, and nobody need wonder
--
-- Called when it holds nothing any longer. Should it hold something after all, its jobs
-- fall back to the `claimed_at` timeout, like those of a worker that never beat.

create or replace function howdah.leave(p_worker_id text) returns void
language sql volatile security definer
begin atomic
    delete from howdah.workers where id = p_worker_id;
end;
