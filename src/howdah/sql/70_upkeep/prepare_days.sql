-- prepare_days · make tomorrow's partitions before anybody needs them
--
-- A day whose partition is missing costs nothing but order: its rows go to the
-- `_unprepared` part and are moved out of it here, also when that day is long over.
--
--   returns  the partitions this call made
--
-- Locks (lock_space, 5) until the transaction ends: one at a time makes or drops days, and whoever
-- comes second has nothing to do. Locks the `_unprepared` parts for the moment of the attachment, and
-- waits for that no longer than 200 ms: somebody may hold `jobs` open for hours. Then the next
-- call tries. For a day that has begun it keeps out writers of the whole table: one that had
-- chosen the `_unprepared` part already, and waited for it, would find itself in the wrong place.

create or replace function howdah.prepare_days(p_ahead int default 3) returns setof text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
    v_stray_jobs   date[];
    v_stray_events date[];
    v_part         record;
begin
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 5) then
        return;
    end if;
    begin
        v_stray_jobs := array(select distinct finished_on from howdah.jobs_finished_unprepared);
        v_stray_events := array(select distinct day from howdah.job_events_unprepared);
    exception when lock_not_available or deadlock_detected then
        return;
    end;

    for v_part in
        select parent, day_column, day, parent || to_char(day, '"_"YYYYMMDD') as name
        from (values ('jobs_finished', 'finished_on', v_stray_jobs), ('job_events', 'day', v_stray_events))
                 as p (parent, day_column, stray)
        cross join lateral (
            select howdah.today() + n as day from generate_series(0, p_ahead) as n
            union
            select unnest(p.stray)
        ) as days
        where to_regclass('howdah.' || parent || to_char(day, '"_"YYYYMMDD')) is null
        order by day, parent
    loop
        begin
            if v_part.day <= howdah.today() then
                execute format('lock table only howdah.%I in share row exclusive mode', v_part.parent);
            end if;
            execute format('lock table howdah.%I in access exclusive mode', v_part.parent || '_unprepared');
            execute format('create table howdah.%I (like howdah.%I including defaults including constraints)',
                           v_part.name, v_part.parent);
            execute format('with stray as (delete from howdah.%1$I where %2$I = %3$L returning *)
                            insert into howdah.%4$I select * from stray',
                           v_part.parent || '_unprepared', v_part.day_column, v_part.day, v_part.name);
            execute format('alter table howdah.%I attach partition howdah.%I for values from (%L) to (%L)',
                           v_part.parent, v_part.name, v_part.day, v_part.day + 1);
            return next v_part.name;
        exception when lock_not_available or deadlock_detected then
            return;
        end;
    end loop;
end;
$$;
