-- prune · delete finished jobs and events, by whole days
--
-- A day is dropped when all of it is older than p_keep; without p_keep, than the options
-- keep_finished and keep_events. A worker that was silent for a day is deleted, and a job type that no
-- worker has known for a year. So are unique keys that no job holds any more, and the steps and signals of jobs that are gone.
--
--   returns  the partitions this call dropped
--
-- Locks (lock_space, 5) until the transaction ends: one session at a time makes or drops partitions, and
-- a second one returns at once. Locks jobs_finished and job_events for the moment of a drop, and
-- waits for that no longer than 200 ms. A day that could not be dropped stays, and stays counted: the next
-- call tries again.

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
    if not pg_try_advisory_xact_lock(howdah.lock_space(), 5) then
        return;
    end if;
    for v_kept in
        select * from (values ('jobs_finished', 'keep_finished'), ('job_events', 'keep_events')) as p (parent, option)
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
            exception when lock_not_available or deadlock_detected then
                exit;
            end;
            return next v_name;
        end loop;
        begin
            if v_kept.parent = 'jobs_finished' then
                with gone as (
                    delete from howdah.jobs_finished_unprepared where finished_on < v_first
                    returning finished_on, job_type, status
                )
                insert into howdah.finished_counts (day, job_type, status, jobs)
                select finished_on, job_type, status, -count(*) from gone group by 1, 2, 3;
                -- not where another job of that day was just added
                delete from howdah.finished_counts as c
                where c.day < v_first and to_regclass('howdah.jobs_finished' || to_char(c.day, '"_"YYYYMMDD')) is null
                  and not exists (select from howdah.jobs_finished_unprepared as u where u.finished_on = c.day);
            else
                delete from howdah.job_events_unprepared where day < v_first;
            end if;
        exception when lock_not_available or deadlock_detected then
            null;
        end;
    end loop;
    perform howdah.forget_unique_keys();
    perform howdah.forget_steps();
    delete from howdah.workers as w
    where w.id = any (array(
        select o.id from howdah.workers as o where o.beat_at < howdah.clock() - interval '1 day'
        for update skip locked
    ));
    delete from howdah.job_types as t
    where t.name = any (array(
        select o.name from howdah.job_types as o where o.last_seen_at < howdah.clock() - interval '1 year'
        for update skip locked
    ));
end;
$$;
