-- retry · claimed, running → pending, or → failed on the last attempt
--
-- Records that these attempts failed and puts the jobs back, to run again after
-- p_delays. Whether an attempt is left depends on the row and on the option max_attempts_limit. A job that expires before
-- its next attempt could begin fails now, with its error.
--
--   p_worker_id, p_ids, p_attempts   as claim returned them
--   p_errors, p_tracebacks           what went wrong
--   p_delays                         how long to wait; null or zero: at once
--   returns                          each id this call moved and the status it has now
--
-- A job gives back the slot of its named limit, and with a delay also that of its key: see hand_over. An ordered job keeps
-- the slot of its key. A job of a run waits for that slot again: see claim_run.
--
-- Locks the rows in id order. Wakes idle workers for jobs that are due at once, and those
-- who follow these jobs.

create or replace function howdah.retry(
    p_worker_id   text,
    p_ids         uuid[],
    p_attempts    int[],
    p_errors      text[],
    p_delays      interval[]  default null,
    p_tracebacks  text[]      default null,
    p_began_ago   interval[]  default null
) returns table (id uuid, status text)
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
    v_limit    int         := howdah.option('max_attempts_limit');
    v_again    uuid[];
    v_watched  uuid[];
    v_types    text[];
    v_due      timestamptz;  -- when the first delayed one is due
    v_slots    howdah.freed_slot[];
begin
    if cardinality(p_ids) > 1 then
        -- jobs that go back and jobs that end are moved in two steps: lock all of them first, in id order
        perform from howdah.jobs_live as j
        where j.id = any (p_ids) and j.worker_id = p_worker_id
        order by j.id for update;
    end if;

    with leases as (
        select l.* from unnest(p_ids, p_attempts, p_errors, p_delays, p_tracebacks, p_began_ago)
                            as l (id, attempt, error, delay, traceback, began_ago)
        order by l.id
    ), again as (
        update howdah.jobs_live as j
        set status = 'pending', worker_id = null, held_by = null, started_at = null,
            claimed_at = case when j.admission is not null and j.ready_at is null then j.claimed_at end,
            last_error = left(l.error, 10000),
            errors = howdah.append_error(j.errors, j.attempts, j.worker_id, l.error, l.traceback,
                                       coalesce(j.started_at, v_now - l.began_ago, j.claimed_at), v_now),
            unread_since = null,
            run_at = case when l.delay > '0' then v_now + l.delay else j.run_at end,
            ready_at = case when l.delay > '0' or (j.admission is not null and (j.limited_by is not null or j.ready_at is null)) then null
                            else now() end,
            admission = case when j.admission is null then null
                             when j.ready_at is null then 'slot'
                             when l.delay > '0'
                             then case when j.key is not null and howdah.is_ordered(j.job_type) then 'backoff' else 'time' end
                             when j.limited_by is not null then 'limit'
                             else j.admission end
        from leases as l
        where j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt
          and j.attempts < least(j.max_attempts, v_limit)
          and (j.expires_at is null or j.expires_at > v_now + greatest(l.delay, '0'))
        returning j.id, j.watched, j.job_type, j.ready_at, j.run_at, j.key, j.limited_by, j.admission
    )
    select array_agg(a.id), array_agg(a.id) filter (where watched),
           array_agg(distinct job_type) filter (where ready_at is not null),
           min(run_at) filter (where ready_at is null),
           array_agg(row(job_type, case when admission in ('time', 'slot') then key end, limited_by, null, null, null)::howdah.freed_slot)
               filter (where admission in ('time', 'backoff', 'limit', 'slot'))
    into v_again, v_watched, v_types, v_due, v_slots from again as a;
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
    return query select a, 'pending' from unnest(v_again) as a;

    if coalesce(cardinality(v_again), 0) < cardinality(p_ids) then
        return query select f, 'failed' from howdah.finish(
            'failed', p_worker_id, p_ids, p_attempts, howdah.with_expiry(p_errors, p_ids, v_limit), p_tracebacks, null,
            p_began_ago) as f;
    end if;
end;
$$;
