-- meet_existing · what an enqueue does with the job that holds its unique key
--
--   p_on_conflict  'existing': nothing. 'replace': give it the new payload. 'debounce': move it to the new time, and to the new
--                  expiry. Both only while it is pending. 'error': raise HW007
--   p_existing     the job that holds the key
--
-- Called by enqueue and enqueue_many, which have locked the job if it is pending. Wakes idle workers for a job that was moved into
-- the line, and those who follow it.

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
    v_now     bool := coalesce(p_run_at <= howdah.clock(), true);
begin
    if p_on_conflict = 'error' then
        perform howdah.refuse_unique_key(p_job_type, p_key, p_existing);
    elsif p_on_conflict = 'replace' then
        update howdah.jobs_live as j set data = p_data
        where j.id = p_existing and j.worker_id is null
        returning j.watched into v_watched;
    elsif p_on_conflict = 'debounce' then
        update howdah.jobs_live as j
        set run_at = p_run_at, ready_at = case when v_now then now() end, expires_at = p_expires_at
        where j.id = p_existing and j.worker_id is null
        returning j.watched into v_watched;
        if found and v_now then
            perform howdah.wake(array[p_job_type]);
        elsif found then
            perform howdah.notify_due(p_run_at);
        end if;
    end if;
    if v_watched then
        perform howdah.notify_followers(array[p_existing]);
    end if;
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
