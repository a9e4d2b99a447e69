-- refuse_schedule · raise 22023 for a schedule whose values are wrong
--
-- It checks what the database can check. Whether a cron expression can be read is known when a worker computes the next firing: then
-- the column `problem` says what is wrong.
--
--   p_options  see set_schedule

create or replace function howdah.refuse_schedule(
    p_name text, p_job_type text, p_data jsonb, p_cron text, p_every interval, p_tz text, p_missed text, p_overlap text, p_options jsonb)
returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_known   text[] := '{priority,max_attempts,expires,expires_at,key,unique_key,unique_until,unique_for,on_conflict}';
    v_unknown text;
    v_draft   record;
begin
    if p_name is null or length(p_name) not between 1 and 200 or p_name ~ '[[:cntrl:]]' then
        raise exception using errcode = '22023',
            message = format('the name of a schedule must have 1 to 200 characters, none of them a control character, not %s',
                             coalesce(quote_literal(left(p_name, 210)), 'null'));
    elsif p_job_type is null then
        raise exception using errcode = '22023', message = format('the schedule %s needs a job type', p_name);
    elsif (p_cron is null) = (p_every is null) then
        raise exception using errcode = '22023', message = format('the schedule %s needs p_cron or p_every, and not both', p_name),
            hint = 'Write p_cron => ''0 3 * * *'', or p_every => ''1 hour''.';
    elsif length(p_cron) not between 1 and 200 or p_cron ~ '[[:cntrl:]]' then
        raise exception using errcode = '22023',
            message = format('a cron expression must have 1 to 200 characters, none of them a control character; this one has %s',
                             length(p_cron)),
            hint = 'Write minute, hour, day of month, month and day of week: ''0 3 * * *''.';
    elsif extract(year from p_every) <> 0 or extract(month from p_every) <> 0 then
        raise exception using errcode = '22023', message = format('p_every must have no months and years, because these differ in length, not %s', p_every),
            hint = 'Write p_cron => ''0 3 1 * *'' for the first day of each month.';
    elsif p_every < '1 second' or p_every > '366 days' then
        raise exception using errcode = '22023', message = format('p_every must be between 1 second and 366 days, not %s', p_every);
    elsif extract(epoch from p_every) * 1000 <> floor(extract(epoch from p_every) * 1000) then
        raise exception using errcode = '22023', message = format('p_every must be whole milliseconds, not %s', p_every);
    elsif p_tz is null or not exists (select from pg_timezone_names as z where z.name = p_tz) then
        raise exception using errcode = '22023', message = format('there is no time zone %s', coalesce(quote_literal(left(p_tz, 100)), 'null')),
            hint = 'Write a name such as ''Europe/Berlin'' or ''UTC'': see pg_timezone_names.';
    elsif p_missed is null or p_missed not in ('skip', 'last', 'all') then
        raise exception using errcode = '22023', message = format('p_missed must be skip, last or all, not %s', coalesce(quote_literal(p_missed), 'null'));
    elsif p_overlap is null or p_overlap not in ('allow', 'skip') then
        raise exception using errcode = '22023', message = format('p_overlap must be allow or skip, not %s', coalesce(quote_literal(p_overlap), 'null'));
    elsif jsonb_typeof(p_data) is distinct from 'object' then
        raise exception using errcode = '22023', message = format('p_data of the schedule %s must be a JSON object', p_name);
    elsif jsonb_typeof(p_options) is distinct from 'object' then
        raise exception using errcode = '22023', message = format('p_options of the schedule %s must be a JSON object', p_name);
    end if;
    select o into v_unknown from jsonb_object_keys(p_options) as o where o <> all (v_known) order by o limit 1;
    if found then
        raise exception using errcode = '22023', message = format('p_options has no %s', quote_literal(left(v_unknown, 100))),
            hint = format('It may have %s.', array_to_string(v_known, ', '));
    end if;
    select * into v_draft from jsonb_to_record(p_options) as o (
        priority int, max_attempts int, expires interval, expires_at timestamptz, key text, unique_key jsonb, unique_until text,
        unique_for interval, on_conflict text);
    if v_draft.expires_at <> 'infinity' then
        raise exception using errcode = '22023', message = format('p_options of the schedule %s has expires_at, one instant for all its jobs', p_name),
            hint = 'Write expires: so long after the job is due.';
    end if;
    if v_draft.max_attempts < 1 then
        raise exception using errcode = '22023', message = format('max_attempts must be at least 1, not %s', v_draft.max_attempts);
    end if;
    perform howdah.expiry(null, v_draft.expires, null);
    perform howdah.refuse_max_attempts(v_draft.max_attempts);
    perform howdah.refuse_key(v_draft.key);
    if v_draft.on_conflict = 'error' then
        raise exception using errcode = '22023', message = 'on_conflict must be existing, replace or debounce, because nobody hears the error of a firing';
    end if;
    if v_draft.unique_key is not null and v_draft.unique_key <> 'false' then
        perform howdah.refuse_unique_options(
            case when v_draft.unique_key = 'true' then 'payload' else v_draft.unique_key #>> '{}' end,
            v_draft.unique_until, v_draft.unique_for, coalesce(v_draft.on_conflict, 'existing'));
    end if;
end;
$$;

-- refuse_unknown_schedule · raise 22023: there is no schedule of this name

create or replace function howdah.refuse_unknown_schedule(p_name text) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = '22023', message = format('there is no schedule %s', coalesce(quote_literal(left(p_name, 210)), 'null')),
        hint = 'select name from howdah.schedules lists them.';
end;
$$;
