-- run_now · pending (waiting) → pending (in line)
--
-- Puts jobs that wait for their `run_at`, or for a retry, into the line at once.
--
--   returns  the ids this call moved; a missing id was already in line, is held by a worker or has ended
--
-- Locks the rows in id order. Wakes idle workers that know the types, and those who follow.

create or replace function howdah.run_now(p_ids uuid[]) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_moved    uuid[];
    v_watched  uuid[];
    v_types    text[];
begin
    with moved as (
        update howdah.jobs_live as j set run_at = howdah.clock(), ready_at = now()
        where j.id = any (array(
            select k.id from howdah.jobs_live as k
            where k.id = any (p_ids) and coalesce(k.worker_id is null, false) and coalesce(k.ready_at is null, false)
            order by k.id for update))
        returning j.id, j.watched, j.job_type
    )
    select array_agg(id), array_agg(id) filter (where watched), array_agg(distinct job_type)
    into v_moved, v_watched, v_types from moved;
    perform howdah.notify_followers(v_watched);
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select unnest(v_moved);
end;
$$;
