-- prune · forget finished jobs and events, by whole days
--
-- A day is dropped once all of it is older than p_keep; without p_keep, than the options
-- keep_finished and keep_events say.
--
--   returns  the partitions this call dropped
--
-- Locks jobs_finished and job_events for the moment of a drop, and waits for that no longer
-- than 200 ms. What could not be dropped stays, and stays counted: the next call tries again.

create or replace function howdah.prune(p_keep interval default null) returns setof text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '200ms'
as $$
declare
    v_kept  record;
    v_name  text;
    v_first date;
begin
    if p_keep < '0' then
        raise exception using errcode = '22023', message = 'p_keep must not be negative';
    end if;
    for v_kept in
        select * from (values ('jobs_finished', 'finished_on', 'keep_finished'), ('job_events', 'day', 'keep_events'))
                          as p (parent, day_column, option)
    loop
        v_first := ((howdah.clock() - coalesce(p_keep, howdah.option(v_kept.option)::interval)) at time zone 'utc')::date;
        for v_name in
            select c.relname from pg_inherits as i join pg_class as c on c.oid = i.inhrelid
            where i.inhparent = ('howdah.' || v_kept.parent)::regclass
              and c.relname ~ '_[0-9]{8}$' and to_date(right(c.relname, 8), 'YYYYMMDD') < v_first
            order by c.relname
        loop
            begin
                execute format('drop table howdah.%I', v_name);
            exception when lock_not_available then
                exit;
            end;
            return next v_name;
        end loop;
        begin
            execute format('delete from howdah.%I where %I < %L',
                           v_kept.parent || '_unprepared', v_kept.day_column, v_first);
            if v_kept.parent = 'jobs_finished' then
                delete from howdah.finished_counts
                where day < v_first and to_regclass('howdah.jobs_finished' || to_char(day, '"_"YYYYMMDD')) is null;
            end if;
        exception when lock_not_available then
            null;
        end;
    end loop;
    delete from howdah.workers where beat_at < howdah.clock() - interval '1 day';
end;
$$;
