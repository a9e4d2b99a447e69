-- set_schedule · make a schedule, or change it: as a whole, from now on
--
--   p_cron, p_tz  a cron expression and the name of its time zone; or
--   p_every       the time between two firings: the first one is so long from now
--   p_data        the payload of its jobs
--   p_options     other parameters of enqueue for its jobs, without `p_`: '{"priority": 50, "key": "reports"}'
--   p_missed      what becomes of firings that no worker could do within a minute: 'skip': nothing. 'last': one job, for the last of
--                 them. 'all': a job for each, for the last 100
--   p_overlap     'skip': no job while the job of the firing before has not ended
--   p_by          for people to read; the user of the session where it is null
--   p_declared, p_declared_with   for register_schedules: the schedule belongs to code, which may change it again. Null: to a person
--
-- The next worker that looks computes the next firing. A schedule that fires at the same times as before keeps its next firing. One that
-- was paused stays paused.
--
-- Locks one row of schedules. Wakes as notify_schedules.

create or replace function howdah.set_schedule(
    p_name           text,
    p_job_type       text,
    p_data           jsonb     default '{}',
    p_cron           text      default null,
    p_every          interval  default null,
    p_tz             text      default 'UTC',
    p_missed         text      default 'last',
    p_overlap        text      default 'allow',
    p_options        jsonb     default '{}',
    p_by             text      default null,
    p_declared       jsonb     default null,
    p_declared_with  text[]    default null
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform howdah.refuse_schedule(p_name, p_job_type, p_data, p_cron, p_every, p_tz, p_missed, p_overlap, p_options);
    insert into howdah.schedules as s (
        name, job_type, data, options, cron, every, tz, missed, overlap, declared, declared_with, counts_from, changed_at, changed_by)
    values (p_name, p_job_type, p_data, p_options, p_cron, make_interval(secs => extract(epoch from p_every)), p_tz, p_missed, p_overlap,
            p_declared, p_declared_with, date_trunc('milliseconds', howdah.clock()), howdah.clock(), coalesce(p_by, session_user))
    on conflict (name) do update
    set job_type = excluded.job_type, data = excluded.data, options = excluded.options, cron = excluded.cron, every = excluded.every,
        tz = excluded.tz, missed = excluded.missed, overlap = excluded.overlap, declared = excluded.declared,
        declared_with = excluded.declared_with, orphaned_at = null, version = s.version + 1, problem = null,
        counts_from = case when (s.cron, s.every, s.tz) is not distinct from (excluded.cron, excluded.every, excluded.tz)
                                and s.orphaned_at is null then s.counts_from else excluded.counts_from end,
        next_firing = case when (s.cron, s.every, s.tz) is not distinct from (excluded.cron, excluded.every, excluded.tz)
                                and s.orphaned_at is null and s.next_firing < 'infinity' then s.next_firing end,
        changed_at = excluded.changed_at, changed_by = excluded.changed_by;
    perform howdah.notify_schedules();
end;
$$;
