-- drain · ask a worker to stop: claim no more, finish the running jobs, release the others
--
-- The worker learns of it with its next report, within seconds, and stops as after
-- SIGTERM. A foreign worker that never calls howdah.record_measures never learns of it.
--
--   returns  true: the worker is alive and was asked
--
-- Locks one row of drain_requests. Wakes nobody.

create or replace function howdah.drain(p_worker_id text) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if not exists (
        select from howdah.workers as w
        where w.id = p_worker_id and w.beat_at >= howdah.clock() - w.silent_after
    ) then
        return false;
    end if;
    insert into howdah.drain_requests (worker_id, requested_at) values (p_worker_id, howdah.clock())
    on conflict (worker_id) do nothing;
    return true;
end;
$$;
