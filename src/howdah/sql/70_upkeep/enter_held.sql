-- enter_held · enter held jobs in the index jobs_held that a claim has left out
--
-- A claim does not write to jobs_held, and `start` does so a quarter of a second later. A worker that dies before that
-- leaves jobs that recover cannot find by worker. So this reads all live jobs when a worker was given up. It also does so
-- every ten minutes, for a claim that reached the server only after its worker had been given up or had deregistered.
--
--   p_worker_ids  workers that were given up now; null: none
--   p_timeout     every ten minutes: jobs that were claimed longer ago, whoever holds them
--
-- Reads jobs_live from beginning to end, about 0.2 s per million jobs. Locks the rows it changes (skip locked). Wakes nobody.

create or replace function howdah.enter_held(p_worker_ids text[], p_timeout interval) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
set enable_seqscan = on
set enable_indexscan = off
set jit = off
as $$
declare
    v_now     timestamptz := howdah.clock();
    v_before  timestamptz;
begin
    if not exists (
        select from howdah.upkeep_log as u where u.done_at between v_now - interval '10 minutes' and v_now
    ) then
        delete from howdah.upkeep_log;
        insert into howdah.upkeep_log (done_at) values (v_now);
        v_before := v_now - p_timeout;
        perform howdah.request_all_looks();
    end if;
    if p_worker_ids is not null or v_before is not null then
        update howdah.jobs_live as j set held_by = j.worker_id
        where j.ctid = any (array(
            select h.ctid from howdah.jobs_live as h
            where h.worker_id is not null and h.held_by is null
              and (h.worker_id = any (p_worker_ids) or h.claimed_at < v_before)
            for update skip locked));
    end if;
end;
$$;
