-- pause_schedule · from now on the schedule does not fire
--
-- No code resumes it. Jobs that it has enqueued stay as they are.
--
--   p_by     for people to read; the user of the session where it is null
--   returns  whether this call paused it; false: it was paused already
--
-- Raises 22023 if there is no such schedule. Locks one row of schedules. Wakes nobody.

create or replace function howdah.pause_schedule(p_name text, p_by text default null) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update howdah.schedules as s
    set paused_at = howdah.clock(), paused_by = left(coalesce(p_by, session_user), 200), version = s.version + 1
    where s.name = p_name and s.paused_at is null;
    if not found and not exists (select from howdah.schedules as s where s.name = p_name) then
        perform howdah.refuse_unknown_schedule(p_name);
    end if;
    return found;
end;
$$;

-- resume_schedule · let a schedule fire again, from now on
--
-- The firings of the time in which it was paused are not made up for. The next worker that looks computes its next firing anew, also
-- that of a schedule that was not paused: after a clock was wrong, or a problem was solved.
--
--   returns  whether it was paused
--
-- Raises 22023 if there is no such schedule. Locks one row of schedules. Wakes as notify_schedules.

create or replace function howdah.resume_schedule(p_name text) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_was_paused bool;
begin
    select s.paused_at is not null into v_was_paused from howdah.schedules as s where s.name = p_name for update;
    if not found then
        perform howdah.refuse_unknown_schedule(p_name);
    end if;
    update howdah.schedules as s
    set paused_at = null, paused_by = null, version = s.version + 1, counts_from = date_trunc('milliseconds', howdah.clock()), next_firing = null, problem = null
    where s.name = p_name;
    perform howdah.notify_schedules();
    return v_was_paused;
end;
$$;
