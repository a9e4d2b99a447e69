-- schedules · which jobs are enqueued at which times
--
-- One row per schedule. A firing enqueues one job and moves `next_firing` in the same transaction, so there is one job per firing
-- however many workers look: see 37_schedules/fire_schedules.sql. The database cannot read a cron expression. A worker computes the
-- times, and the database checks what can be checked.
--
-- Only the functions of 37_schedules write here. A schedule fires unless it is paused or orphaned.

create table howdah.schedules (
    name          text collate "C"      primary key,
    job_type      howdah.job_name       not null,
    data          howdah.json_object    not null default '{}',
    options       jsonb                 not null default '{}',      -- of its jobs: other parameters of enqueue, without `p_`
    cron          text,                                             -- a cron expression; null: `every`
    every         interval,                                         -- the time between two firings
    tz            text                  not null default 'UTC',     -- the time zone of `cron`
    missed        text                  not null default 'last',    -- what becomes of firings that no worker could do in time
    overlap       text                  not null default 'allow',   -- skip: not while the job of the firing before has not ended
    declared      jsonb,                                            -- as in the code that declared it; null: made by a person
    declared_with text[],                                           -- job types of that code: how a newer version is recognised
    paused_at     timestamptz,
    paused_by     text,
    orphaned_at   timestamptz,                                      -- since when the code does not declare it any more
    version       bigint                not null default 1,         -- raised by each change, so that a firing computed before it does nothing
    counts_from   timestamptz           not null,                   -- its firings are those after this instant
    next_firing   timestamptz,                                      -- null: the next worker that looks computes it; infinity: it has none
    last_firing   timestamptz,                                      -- the time for which it enqueued a job last
    last_job_id   uuid,
    last_skipped  timestamptz,                                      -- the time for which it last enqueued none, because of `overlap`
    problem       text,                                             -- why it cannot fire, or why its last firing enqueued no job
    changed_at    timestamptz           not null,
    changed_by    text                  not null,

    constraint name_is_1_to_200_characters_none_of_them_control check (length(name) between 1 and 200 and name !~ '[[:cntrl:]]'),
    constraint options_are_an_object check (jsonb_typeof(options) = 'object'),
    constraint a_schedule_has_cron_or_every check ((cron is null) <> (every is null)),
    constraint cron_is_1_to_200_characters check (length(cron) between 1 and 200),
    constraint every_is_between_1_second_and_366_days check (every between '1 second' and '366 days'),
    constraint tz_is_1_to_100_characters check (length(tz) between 1 and 100),
    constraint missed_is_skip_last_or_all check (missed in ('skip', 'last', 'all')),
    constraint overlap_is_allow_or_skip check (overlap in ('allow', 'skip')),
    constraint paused_by_is_at_most_200_characters check (length(paused_by) <= 200),
    constraint next_firing_lies_between_the_years_1970_and_9999
        check (next_firing = 'infinity' or next_firing between '1970-01-01 00:00Z' and '9999-01-01 00:00Z'),
    constraint problem_is_at_most_2000_characters check (length(problem) <= 2000),
    constraint changed_by_is_at_most_200_characters check (length(changed_by) <= 200)
) with (fillfactor = 50);

create index schedules_due on howdah.schedules (next_firing nulls first)
    where paused_at is null and orphaned_at is null;
