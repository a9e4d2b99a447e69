-- start · claimed → running
--
-- Marks attempts whose handler runs, and enters them in the index jobs_held. A job that ends before the next flush
-- does not need this: the verb that settles it gets p_began_ago too.
--
--   p_began_ago  how long ago each handler began; an interval, because the clocks of clients may be wrong
--   returns      the ids this call moved; a missing id was stale, or marked before
--
-- Locks the rows in id order. Wakes those who follow these jobs.

create or replace function howdah.start(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_began_ago  interval[] default null
) returns setof uuid
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
    v_now      timestamptz := howdah.clock();
    v_moved    uuid[];
    v_watched  uuid[];
begin
    with leases as (
        select l.id, l.attempt, l.began_ago from unnest(p_ids, p_attempts, p_began_ago) as l (id, attempt, began_ago)
        order by l.id
    ), moved as (
        update howdah.jobs_live as j
        set status = 'running', held_by = p_worker_id, started_at = v_now - coalesce(l.began_ago, '0')
        from leases as l
        where j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt
          and j.status = 'claimed'
        returning j.id, j.watched
    )
    select array_agg(id), array_agg(id) filter (where watched) into v_moved, v_watched from moved;
    perform howdah.notify_followers(v_watched);
    return query select unnest(v_moved);
end;
$$;
