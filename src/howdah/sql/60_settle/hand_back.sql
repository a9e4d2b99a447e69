-- hand_back · claimed, running → pending, the attempt not counted; or → failed
--
-- A worker reports that it cannot read the payloads of these jobs: they have a field that its code does not know, or
-- lack one that it needs. Another version of the code may be able to, so each job waits for a worker that can read
-- it: a second at first, then as long as it has waited already, a minute at most. Two kinds fail instead:
--
--   · a job that no worker could read for as long as the option fail_unread_after
--   · a job that the newest code cannot read: p_signatures has the signature of the worker's code,
--     and it is the registered one, or none is registered
--
--   p_worker_id, p_ids, p_attempts   as claim returned them
--   p_errors                         what does not match, for people to read
--   p_signatures                     null: the code is never taken for the newest
--   returns                          each id this call moved and the status it has now
--
-- Locks the rows in id order. Wakes those who follow these jobs.

create or replace function howdah.hand_back(
    p_worker_id   text,
    p_ids         uuid[],
    p_attempts    int[],
    p_errors      text[],
    p_signatures  text[]  default null
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
    v_limit    interval    := howdah.option('fail_unread_after');
    v_back     uuid[];
    v_watched  uuid[];
    v_ids      uuid[];
    v_attempts int[];
    v_errors   text[];
    v_slots    howdah.freed_slot[];
begin
    -- lock all of them first, in id order
    perform from howdah.jobs_live as j
    where j.id = any (p_ids) and j.worker_id = p_worker_id
    order by j.id for update;

    with leases as (
        select l.* from unnest(p_ids, p_attempts, p_errors, p_signatures) as l (id, attempt, error, signature)
        order by l.id
    ), back as (
        update howdah.jobs_live as j
        set status = 'pending', worker_id = null, held_by = null, started_at = null, attempts = j.attempts - 1,
            claimed_at = case when j.admission is not null and j.ready_at is null then j.claimed_at end,
            unread_since = coalesce(j.unread_since, v_now), ready_at = null,
            admission = case when j.admission is null then null
                             when j.ready_at is null then 'slot'
                             when j.key is not null and howdah.is_ordered(j.job_type) then 'backoff' else 'time' end,
            run_at = v_now + least(greatest(v_now - j.unread_since, interval '1 second'), interval '1 minute'),
            last_error = format('worker %s cannot read its payload: %s', p_worker_id, left(l.error, 10000))
        from leases as l
        where j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt
          and v_now - coalesce(j.unread_since, v_now) < v_limit
          and (l.signature is null or exists (
              select from howdah.job_types as t where t.name = j.job_type and t.signature <> l.signature))
        returning j.id, j.watched, j.job_type, j.key, j.limited_by, j.admission
    )
    select array_agg(b.id), array_agg(b.id) filter (where b.watched),
           array_agg(row(b.job_type, case when b.admission <> 'backoff' then b.key end, b.limited_by, null, null, null)::howdah.freed_slot)
               filter (where b.admission is not null)
    into v_back, v_watched, v_slots from back as b;
    if v_slots is not null then
        perform howdah.hand_over(v_slots, p_back => true);
    end if;

    perform howdah.notify_followers(v_watched);
    return query select b, 'pending' from unnest(v_back) as b;

    if coalesce(cardinality(v_back), 0) < cardinality(p_ids) then
        select array_agg(l.id), array_agg(l.attempt),
               array_agg(case when coalesce(v_now - j.unread_since < v_limit, true) then coalesce(l.error, '')
                              else format('no worker could read its payload for %s (option fail_unread_after): %s',
                                          date_trunc('second', v_now - j.unread_since), l.error) end)
        into v_ids, v_attempts, v_errors
        from unnest(p_ids, p_attempts, p_errors) as l (id, attempt, error)
        join howdah.jobs_live as j on j.id = any (array[l.id])
        where l.id <> all (coalesce(v_back, '{}'));
        if v_ids is not null then
            return query select f, 'failed' from howdah.fail(p_worker_id, v_ids, v_attempts, v_errors) as f;
        end if;
    end if;
end;
$$;
