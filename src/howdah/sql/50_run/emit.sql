-- emit · running → running
--
-- Appends events to their jobs, in the order given. Each gets the job's next number.
--
--   returns  the ids that are still ours; a missing id was cancelled or recovered
--
-- Locks the rows in id order; touches no indexed column. Wakes those who follow these jobs.

create or replace function howdah.emit(
    p_worker_id  text,
    p_ids        uuid[],     -- one per event, so an id may stand here many times
    p_attempts   int[],
    p_kinds      text[],
    p_data       jsonb[]
) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_ours     uuid[];
    v_watched  uuid[];
begin
    with events as materialized (
        select e.id, e.attempt, e.kind, e.data, e.nth, row_number() over (partition by e.id, e.attempt order by e.nth) as offset_
        from unnest(p_ids, p_attempts, p_kinds, p_data) with ordinality as e (id, attempt, kind, data, nth)
    ), talkers as (
        select id, attempt, count(*)::int as said from events group by id, attempt order by id
    ), ours as (
        update howdah.jobs_live as j
        set events_count = j.events_count + t.said
        from talkers as t
        where j.id = t.id and j.worker_id = p_worker_id and j.attempts = t.attempt
        returning j.id, j.watched, j.attempts, j.events_count - t.said as before
    ), written as (
        insert into howdah.job_events (job_id, number, kind, data, attempt, created_at, day)
        select o.id, o.before + e.offset_, e.kind, coalesce(e.data, 'null'), e.attempt, howdah.clock(), howdah.today()
        from ours as o join events as e on e.id = o.id and e.attempt = o.attempts
        order by e.nth
    )
    select array_agg(id), array_agg(id) filter (where watched) into v_ours, v_watched from ours;
    perform howdah.announce(v_watched);
    return query select unnest(v_ours);
end;
$$;
