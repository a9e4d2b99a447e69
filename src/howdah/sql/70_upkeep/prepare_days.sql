-- prepare_days · create the partitions of the next days before they are needed
--
-- Rows of a day without a partition go to the `_unprepared` partition. This function moves them to a partition of
-- their day, also when that day is long over. Meanwhile nobody can read or write the `_unprepared` partition (5 s for a
-- million jobs), so it works in steps: the day with the fewest rows first, and after 100,000 rows a call leaves the
-- rest to the next call. When the rows of only one day are left there, no row is moved: the `_unprepared` partition becomes
-- that day, and a new one replaces it.
--
--   returns  the partitions that this call made: call again until there are none
--
-- Locks (lock_space, 5) until the transaction ends: one session at a time makes or drops partitions, and a second
-- one returns at once. Locks the `_unprepared` partitions while it attaches, and waits for that 200 ms at most: somebody
-- may have `jobs` open for hours. Then the next call tries again. For today and earlier days it locks out writers of
-- the whole table: one that waits for the `_unprepared` partition would otherwise write a row that no longer belongs there.

create or replace function howdah.prepare_days(p_ahead int default 3) returns setof text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
    v_unprepared jsonb;  -- per table: how many rows of each day are in the _unprepared partition
    v_part   record;
    v_moved  bigint := 0;
    v_now    bigint;
    v_alone  bool;
begin
    if (p_ahead between 0 and 366) is not true then
        raise exception using errcode = '22023', message = 'p_ahead must be between 0 and 366 days';
    end if;
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 5) then
        return;
    end if;
    begin
        select jsonb_object_agg(parent, of_days) into v_unprepared
        from (select 'jobs_finished' as parent, coalesce(jsonb_object_agg(day, rows), '{}') as of_days
              from (select finished_on as day, count(*) as rows from howdah.jobs_finished_unprepared group by 1) as j
              union all
              select 'job_events', coalesce(jsonb_object_agg(day, rows), '{}')
              from (select day, count(*) as rows from howdah.job_events_unprepared group by 1) as e) as s;
    exception when lock_not_available or deadlock_detected then
        return;
    end;

    for v_part in
        select parent, day_column, day, parent || to_char(day, '"_"YYYYMMDD') as name,
               coalesce((v_unprepared -> parent ->> day::text)::bigint, 0) as rows
        from (values ('jobs_finished', 'finished_on'), ('job_events', 'day')) as p (parent, day_column)
        cross join lateral (
            select howdah.today() + n as day from generate_series(0, p_ahead) as n
            union
            select jsonb_object_keys(v_unprepared -> p.parent)::date
        ) as days
        where to_regclass('howdah.' || parent || to_char(day, '"_"YYYYMMDD')) is null
        order by rows, day, parent
    loop
        exit when v_moved >= 100000 and v_part.rows > 0;
        begin
            if v_part.rows > 100000 then
                -- writers wait for this table in any case
                execute format('lock table only howdah.%I in access exclusive mode', v_part.parent);
            elsif v_part.day <= howdah.today() then
                execute format('lock table only howdah.%I in share row exclusive mode', v_part.parent);
            end if;
            execute format('lock table howdah.%I in access exclusive mode', v_part.parent || '_unprepared');
            v_alone := false;
            if v_part.rows > 100000 then
                execute format('select not exists (select from howdah.%I where %I <> %L)',
                               v_part.parent || '_unprepared', v_part.day_column, v_part.day) into v_alone;
            end if;
            if v_alone then
                execute format('alter table howdah.%I detach partition howdah.%I',
                               v_part.parent, v_part.parent || '_unprepared');
                execute format('alter table howdah.%I rename to %I', v_part.parent || '_unprepared', v_part.name);
            else
                execute format('create table howdah.%I (like howdah.%I including defaults including constraints)',
                               v_part.name, v_part.parent);
                execute format('with moved as (delete from howdah.%1$I where %2$I = %3$L returning *)
                                insert into howdah.%4$I select * from moved',
                               v_part.parent || '_unprepared', v_part.day_column, v_part.day, v_part.name);
                get diagnostics v_now = row_count;
                v_moved := v_moved + v_now;
            end if;
            execute format('alter table howdah.%I attach partition howdah.%I for values from (%L) to (%L)',
                           v_part.parent, v_part.name, v_part.day, v_part.day + 1);
            if v_alone then
                execute format('create table howdah.%I partition of howdah.%I default',
                               v_part.parent || '_unprepared', v_part.parent);
            end if;
            return next v_part.name;
        exception when lock_not_available or deadlock_detected then
            return;
        end;
    end loop;
end;
$$;
