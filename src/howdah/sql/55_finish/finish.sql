-- finish · pending, claimed, running → completed, failed, cancelled
--
-- The one function that ends jobs: complete, fail, retry, cancel and recover all call it. The row leaves jobs_live by DELETE
-- and enters its day of jobs_finished by INSERT in one statement. An UPDATE that moves it would make concurrent
-- claims fail with 40001.
--
--   p_status                         the status in which they end
--   p_worker_id, p_ids, p_attempts   the leases
--   p_fenced                         false: ignore the leases, because a person ends these jobs (cancel); their
--                                    workers are notified
--   p_errors, p_tracebacks           what went wrong, per attempt; null where nothing did
--   p_results                        what the handler returned
--   p_began_ago                      how long ago each handler began
--   p_lost                           true: their worker went silent
--   p_claims                         jobs of these types that get a slot of these jobs are claimed for the worker: see hand_over
--   returns                          the ids this call moved; a missing id was stale. With p_claims also null and the ids that it claimed
--
-- Locks the rows in id order, so two batches may wait for each other but never deadlock. Releases their unique keys, if no enqueue has
-- them locked. Slots of keys and limits go to the next jobs: see hand_over. Wakes those who follow these jobs, and those whom
-- hand_over wakes.

create or replace function howdah.finish(
    p_status      text,
    p_worker_id   text,
    p_ids         uuid[],
    p_attempts    int[],
    p_errors      text[]      default null,
    p_tracebacks  text[]      default null,
    p_results     jsonb[]     default null,
    p_began_ago   interval[]  default null,
    p_fenced      bool        default true,
    p_lost        bool        default null,
    p_claims      text[]      default null
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
    -- of the types of their columns: a value of another type is checked again for every row
    v_now      howdah.instant    := howdah.clock();
    v_status   howdah.job_status := p_status;
    v_all      howdah.percent    := 100;
    v_today    date              := howdah.today();
    v_moved    uuid[];
    v_watched  uuid[];
    v_keys     text[];
    v_unique   uuid[];
    v_slots    howdah.freed_slot[];
    v_claimed  uuid[];
begin
    with leases as (
        select l.* from unnest(p_ids, p_attempts, p_errors, p_tracebacks, p_results, p_began_ago)
                            as l (id, attempt, error, traceback, result, began_ago)
        order by l.id
    ), ended as (
        delete from howdah.jobs_live as j
        using leases as l
        where j.id = any (array[l.id])
          and (not p_fenced or (j.worker_id = p_worker_id and j.attempts = l.attempt))
        returning j.id, j.job_type, j.priority, j.data, j.progress, j.current_stage, j.events_count, j.worker_id, j.claimed_at,
                  j.created_at, j.attempts, j.max_attempts, j.last_error, j.run_at, j.errors, j.trace, j.watched, j.expires_at,
                  j.unique_key, j.unique_until, j.key, j.limited_by, j.admission, j.arrival, l.error as error_, l.traceback as traceback_, l.result as result_,
                  case when j.started_at is null and l.began_ago is not null then (v_now - l.began_ago)::howdah.instant
                       else coalesce(j.started_at, j.claimed_at) end as started_at_
    ), kept as (
        insert into howdah.jobs_finished (
            id, job_type, priority, status, data, progress, current_stage, events_count, worker_id,
            claimed_at, created_at, started_at, completed_at, attempts, max_attempts, last_error,
            run_at, ready_at, expires_at, result, errors, trace, unique_key, unique_until, finished_on, key)
        select id, job_type, priority, v_status, data,
               case v_status when 'completed' then v_all else progress end,
               current_stage, events_count, worker_id, claimed_at, created_at, started_at_, v_now,
               attempts, max_attempts,
               case when error_ is null then last_error else left(error_, 10000)::howdah.long_text end, run_at, null, expires_at,
               result_,
               case when error_ is null or worker_id is null then errors
                    else howdah.append_error(errors, attempts, worker_id, error_, traceback_, started_at_, v_now, p_lost) end,
               trace, unique_key, unique_until, v_today, key
        from ended
    ), counted as (
        insert into howdah.finished_counts (day, job_type, status, jobs)
        select v_today, job_type, p_status, count(*) from ended group by job_type
    )
    select array_agg(id), array_agg(id) filter (where watched or (not p_fenced and worker_id is not null)),
           array_agg(unique_key) filter (where unique_key is not null), array_agg(id) filter (where unique_key is not null),
           array_agg(row(job_type, key, case admission when 'admitted' then limited_by end, claimed_at, ~priority, arrival)::howdah.freed_slot)
               filter (where admission < 'slot')
    into v_moved, v_watched, v_keys, v_unique, v_slots from ended;
    if v_keys is not null then
        perform howdah.release_unique_keys(v_keys, v_unique);
    end if;
    if v_slots is not null then
        v_claimed := howdah.hand_over(v_slots, p_worker_id, p_claims);
    end if;
    perform howdah.notify_followers(v_watched);
    return query select unnest(v_moved);
    if v_claimed is not null then
        return query select null::uuid union all select unnest(v_claimed);
    end if;
end;
$$;
