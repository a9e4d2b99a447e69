-- emit · running → running
--
-- Appends events to their jobs, in the order given. Each gets the job's next number.
--
--   returns  the ids that the worker still holds; a missing id was cancelled or recovered
--
-- Locks the rows in id order; changes no indexed column. Wakes those who follow these jobs.

create or replace function howdah.emit(
    p_worker_id  text,
    p_ids        uuid[],     -- one per event, so an id may occur several times
    p_attempts   int[],
    p_kinds      text[],
    p_data       jsonb[]
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
    v_ours     uuid[];
    v_watched  uuid[];
begin
    loop
        begin
            with emitters as (
                select e.id, e.attempt, count(*)::int as added,
                       array_agg(e.kind order by e.nth) as kinds, array_agg(e.data order by e.nth) as data
                from unnest(p_ids, p_attempts, p_kinds, p_data) with ordinality as e (id, attempt, kind, data, nth)
                group by e.id, e.attempt order by e.id
            ), ours as (
                update howdah.jobs_live as j
                set events_count = (j.events_count::bigint + t.added) % 2000000000  -- never out of range
                from emitters as t
                where j.id = any (array[t.id]) and j.worker_id = p_worker_id and j.attempts = t.attempt
                returning j.id, j.watched, j.attempts, j.events_count - t.added as before, t.kinds, t.data
            ), written as (
                insert into howdah.job_events (job_id, number, kind, data, attempt, created_at, day)
                select o.id, o.before + e.nth, e.kind, coalesce(e.data, 'null'), o.attempts, howdah.clock(), howdah.today()
                from ours as o cross join lateral unnest(o.kinds, o.data) with ordinality as e (kind, data, nth)
            )
            select array_agg(id), array_agg(id) filter (where watched) into v_ours, v_watched from ours;
            exit;
        exception when unique_violation then
            -- events of a former job with the same id still exist: continue after them
            update howdah.jobs_live as j set events_count = last.number
            from unnest(p_ids) as e (id)
            cross join lateral (select max(number) as number from howdah.job_events where job_id = e.id) as last
            where j.id = any (array[e.id]) and j.events_count < last.number;
            if not found then
                raise;
            end if;
        end;
    end loop;
    perform howdah.notify_followers(v_watched);
    return query select unnest(v_ours);
end;
$$;
