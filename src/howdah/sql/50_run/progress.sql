-- progress · running → running
--
-- Writes the progress of these attempts. A null percent or stage keeps the old one.
--
--   returns  the ids that the worker still holds; a missing id was cancelled or recovered
--
-- Locks the rows in id order; changes no indexed column. Wakes those who follow these jobs.

create or replace function howdah.progress(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_percents   int[],
    p_stages     text[] default null
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
    with reports as (
        select r.id, r.attempt, r.percent, r.stage
        from unnest(p_ids, p_attempts, p_percents, p_stages) as r (id, attempt, percent, stage)
        order by r.id
    ), ours as (
        update howdah.jobs_live as j
        set progress = coalesce(r.percent, j.progress), current_stage = coalesce(r.stage, j.current_stage)
        from reports as r
        where j.id = any (array[r.id]) and j.worker_id = p_worker_id and j.attempts = r.attempt
        returning j.id, j.watched
    )
    select array_agg(id), array_agg(id) filter (where watched) into v_ours, v_watched from ours;
    perform howdah.notify_followers(v_watched);
    return query select unnest(v_ours);
end;
$$;
