-- meet_existing · what an enqueue does with the job that holds its unique key
--
--   p_on_conflict  'existing': nothing. 'replace': give it the new payload. 'debounce': move it to the new time, and to the new
--                  expiry. Both only while it is pending. 'error': raise HW007
--   p_existing     the job that holds the key
--
-- Called by enqueue and enqueue_many, which have locked the job if it is pending. Wakes idle workers for a job that was moved into
-- the line, and those who follow it. A job that is moved out of the line gives back its slots: see debounce.

create or replace function howdah.meet_existing(
    p_on_conflict  text,
    p_existing     uuid,
    p_job_type     text,
    p_key          text,
    p_data         jsonb,
    p_run_at       timestamptz,
    p_expires_at   timestamptz
) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_watched bool;
begin
    if p_on_conflict = 'error' then
        perform howdah.refuse_unique_key(p_job_type, p_key, p_existing);
    elsif p_on_conflict = 'replace' then
        update howdah.jobs_live as j set data = p_data
        where j.id = p_existing and j.worker_id is null
        returning j.watched into v_watched;
    elsif p_on_conflict = 'debounce' then
        v_watched := howdah.debounce(p_existing, p_run_at, p_expires_at);
    end if;
    if v_watched then
        perform howdah.notify_followers(array[p_existing]);
    end if;
end;
$$;

-- debounce · move a pending job to another time
--
--   p_run_at  null: now
--   returns   whether somebody follows the job
--
-- A job with a concurrency key or a limit goes back to what it waits for first, as a new job of that time would, but keeps its arrival. So it
-- gives back its slots when it is not due any more: see hand_over. An ordered job keeps the slot of its key, as in retry.
--
-- Locks the job. Wakes idle workers that know the type, or as notify_due, request_look and hand_over.

create or replace function howdah.debounce(p_id uuid, p_run_at timestamptz, p_expires_at timestamptz) returns bool
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_job   record;
    v_next  text;
    v_due   bool := coalesce(p_run_at <= howdah.clock(), true);
begin
    select j.job_type, j.key, j.limited_by, j.admission, j.watched into v_job from howdah.jobs_live as j
    where j.id = p_id and j.worker_id is null
    for no key update;
    if not found then
        return null;
    end if;
    if v_job.admission is not null then
        v_next := case when not v_due and v_job.admission < 'slot' and v_job.key is not null
                            and (v_job.admission = 'backoff' or howdah.is_ordered(v_job.job_type)) then 'backoff'
                       when not v_due then 'time'
                       when v_job.admission = 'time' and v_job.key is not null then 'slot'
                       when v_job.admission not in ('time', 'backoff') then v_job.admission
                       when v_job.limited_by is not null then 'limit'
                       else 'admitted' end;
    end if;
    update howdah.jobs_live as j
    set run_at = p_run_at, expires_at = p_expires_at, admission = v_next,
        ready_at = case when v_due and coalesce(v_next, 'admitted') = 'admitted' then now() end
    where j.id = p_id;
    if not v_due and v_job.admission in ('admitted', 'limit') then
        perform howdah.hand_over(array[row(v_job.job_type, case v_next when 'time' then v_job.key end,
                                           case v_job.admission when 'admitted' then v_job.limited_by end, null, null, null)::howdah.freed_slot]);
    end if;
    if not v_due then
        perform howdah.notify_due(p_run_at);
    elsif v_next = 'slot' then
        perform howdah.request_look(v_job.job_type, v_job.key, null);
    elsif v_next = 'limit' then
        perform howdah.request_look(v_job.job_type, null, v_job.limited_by);
    else
        perform howdah.wake(array[v_job.job_type]);
    end if;
    return v_job.watched;
end;
$$;

-- refuse_unique_options · raise 22023 for options of a unique job that are wrong

create or replace function howdah.refuse_unique_options(p_key text, p_until text, p_for interval, p_on_conflict text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if length(p_key) not between 1 and 200 then
        raise exception using errcode = '22023',
            message = format('p_unique_key must have 1 to 200 characters, not %s', length(p_key)),
            hint = 'A longer text: use its hash, such as howdah.payload_key(…).';
    elsif p_until not in ('started', 'ended') then
        raise exception using errcode = '22023',
            message = format('p_unique_until must be started or ended, not %s', to_json(p_until));
    elsif p_on_conflict not in ('existing', 'replace', 'debounce', 'error') then
        raise exception using errcode = '22023',
            message = format('p_on_conflict must be existing, replace, debounce or error, not %s', to_json(p_on_conflict));
    elsif p_for <= '0' then
        raise exception using errcode = '22023', message = format('p_unique_for must be longer than nothing, not %s', p_for);
    elsif p_for is not null and p_until is not null then
        raise exception using errcode = '22023', message = 'give p_unique_until or p_unique_for, not both';
    end if;
end;
$$;
