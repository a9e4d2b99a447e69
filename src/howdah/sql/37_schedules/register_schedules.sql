-- register_schedules · a worker writes the schedules that its code declares when it starts
--
-- The worker that starts last wins. It changes only schedules that code has made: one that a person made or changed stays, and one that
-- a person paused stays paused. A schedule that earlier code declared, and this code does not, is orphaned: it fires no more and is
-- kept. It is earlier code if both know a job type. Code that declares the schedule again takes it out of that state.
--
--   p_types      all job types of the code
--   p_schedules  a JSON array of what the code declares, with the names of set_schedule's parameters without `p_`
--   returns      what was done: changed, orphaned, restored or kept (a person's); for a log
--
-- Schedules whose next firing could not be computed are tried again. Locks the rows it changes. Wakes as notify_schedules.

create or replace function howdah.register_schedules(p_worker_id text, p_types text[], p_schedules jsonb default '[]')
returns table (name text, done text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_with     text[] := array(select t from unnest(p_types) as t order by t limit 50);  -- enough to know it again
    v_declared jsonb;
    v_known    record;
begin
    if jsonb_typeof(p_schedules) is distinct from 'array' then
        raise exception using errcode = '22023', message = 'p_schedules must be a JSON array of objects';
    end if;
    for name, v_declared in
        select d ->> 'name', d from jsonb_array_elements(p_schedules) as d order by 1
    loop
        select s.declared, s.declared_with, s.orphaned_at into v_known from howdah.schedules as s where s.name = register_schedules.name for update;
        if found and v_known.declared is null then
            done := 'kept';
            return next;
        elsif v_known.declared is distinct from v_declared then
            perform howdah.set_schedule(
                name, v_declared ->> 'job_type', coalesce(v_declared -> 'data', '{}'), v_declared ->> 'cron',
                (v_declared ->> 'every')::interval, coalesce(v_declared ->> 'tz', 'UTC'), coalesce(v_declared ->> 'missed', 'last'),
                coalesce(v_declared ->> 'overlap', 'allow'), coalesce(v_declared -> 'options', '{}'), left(p_worker_id, 200),
                v_declared, v_with);
            done := 'changed';
            return next;
        elsif v_known.orphaned_at is not null then
            update howdah.schedules as s
            set orphaned_at = null, declared_with = v_with, version = s.version + 1
            where s.name = register_schedules.name;
            perform howdah.notify_schedules();
            done := 'restored';
            return next;
        elsif v_known.declared_with is distinct from v_with then
            update howdah.schedules as s set declared_with = v_with where s.name = register_schedules.name;
        end if;
    end loop;

    for name in
        update howdah.schedules as s set orphaned_at = howdah.clock(), version = s.version + 1
        where s.declared is not null and s.orphaned_at is null and s.declared_with && p_types
          and not exists (select from jsonb_array_elements(p_schedules) as d where d ->> 'name' = s.name)
        returning s.name
    loop
        done := 'orphaned';
        return next;
    end loop;

    update howdah.schedules as s set next_firing = null, version = s.version + 1 where s.next_firing = 'infinity' and s.problem is not null;
    if found then
        perform howdah.notify_schedules();
    end if;
end;
$$;
