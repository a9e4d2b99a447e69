-- release · claimed, running → pending, the attempt not counted
--
-- Puts jobs back: not started, when a worker stops or holds more than it can start soon; or
-- delayed by their handler (snooze), to run again after p_delays. Without a delay a job returns to its
-- old position in the line.
--
--   p_worker_id, p_ids, p_attempts   as claim returned them
--   returns                          the ids this call moved; a missing id was stale
--
-- A delayed job gives back its slots: see hand_over. Only an ordered job keeps the slot of its key. A job of a run waits for the slot
-- of its key again: see claim_run.
--
-- Locks the rows in id order. Wakes idle workers that know the types.

create or replace function howdah.release(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_delays     interval[] default null
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
    v_moved    uuid[];
    v_watched  uuid[];
    v_types    text[];
    v_due      timestamptz;  -- when the first delayed one is due
    v_slots    howdah.freed_slot[];
begin
    with leases as (
        select l.* from unnest(p_ids, p_attempts, p_delays) as l (id, attempt, delay) order by l.id
    ), moved as (
        update howdah.jobs_live as j
        set status = 'pending', worker_id = null, held_by = null, started_at = null,
            claimed_at = case when j.admission is not null and j.ready_at is null then j.claimed_at end,
            attempts = j.attempts - 1,
            run_at = case when l.delay > '0' then howdah.clock() + l.delay else j.run_at end,
            ready_at = case when l.delay > '0' or (j.admission is not null and j.ready_at is null) then null else coalesce(j.ready_at, now()) end,
            admission = case when j.admission is not null and j.ready_at is null then 'slot'
                             when j.admission is not null and l.delay > '0'
                             then case when j.key is not null and howdah.is_ordered(j.job_type) then 'backoff' else 'time' end
                             else j.admission end
        from leases as l
        where j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt
        returning j.id, j.watched, j.job_type, j.ready_at, j.run_at, j.key, j.limited_by, j.admission
    )
    select array_agg(id), array_agg(id) filter (where watched),
           array_agg(distinct job_type) filter (where ready_at is not null),
           min(run_at) filter (where ready_at is null),
           array_agg(row(job_type, case when admission <> 'backoff' then key end, limited_by, null, null, null)::howdah.freed_slot)
               filter (where admission in ('time', 'backoff', 'slot'))
    into v_moved, v_watched, v_types, v_due, v_slots from moved;
    if v_slots is not null then
        perform howdah.hand_over(v_slots, p_back => true);
    end if;

    perform howdah.notify_followers(v_watched);
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    if v_due is not null then
        perform howdah.notify_due(v_due);
    end if;
    return query select unnest(v_moved);
end;
$$;
