-- reprioritise · pending → pending, with another priority
--
-- Moves waiting jobs to another lane; each keeps its ready_at, so its age decides its position there.
--
--   returns  the ids this call moved; a missing id is held by a worker, has ended, or never existed
--
-- Locks the rows in id order. Wakes those who follow these jobs.

create or replace function howdah.reprioritise(p_ids uuid[], p_priority int) returns setof uuid
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
begin
    if p_priority is null then
        raise exception using errcode = '22023', message = 'p_priority must be a number';
    end if;
    with moved as (
        update howdah.jobs_live as j set priority = p_priority
        where j.id = any (array(
            select k.id from howdah.jobs_live as k
            where k.id = any (p_ids) and coalesce(k.worker_id is null, false)
            order by k.id for update))
        returning j.id, j.watched
    )
    select array_agg(id), array_agg(id) filter (where watched) into v_moved, v_watched from moved;
    perform howdah.notify_followers(v_watched);
    return query select unnest(v_moved);
end;
$$;
