-- jobs · one relation to ask, three places behind it
--
--   jobs_live        pending, claimed, running: small and hot
--   jobs_finished    completed, failed, cancelled: by the day of finishing, so that
--                    forgetting a day is `drop table` and never a mass delete
--
-- A job stands in line when `ready_at` is set and nobody holds it. The line of a type is
-- the index jobs_ready: highest priority first, then by ready_at, then by id. `ready_at` is the
-- moment the job joined the line: null while it waits for `run_at`; kept while a worker
-- holds it, so that a job handed back stands where it stood. Beats, progress, events and
-- `running` touch no indexed column, so those updates stay on their page (HOT).

create table howdah.jobs (
    id             uuid         not null default howdah.new_id(),
    job_type       howdah.job_name not null,
    priority       int          not null default 100,
    status         howdah.job_status not null default 'pending',
    data           howdah.json_object not null default '{}',
    progress       howdah.percent not null default 0,
    current_stage  howdah.long_text,
    events_count   int          not null default 0,
    worker_id      howdah.worker_name,                  -- who holds it; with attempts and id: the lease
    claimed_at     howdah.instant,
    created_at     howdah.instant not null default now(),
    started_at     howdah.instant,
    completed_at   howdah.instant,                      -- when it ended, however it ended
    attempts       howdah.attempts_made not null default 0,
    max_attempts   howdah.attempts_allowed not null default 3,
    last_error     howdah.long_text,
    run_at         howdah.instant,                      -- not before; null: at once
    ready_at       howdah.instant default now(),
    result         howdah.json_value,
    errors         jsonb        not null default '[]',  -- one entry per attempt that went wrong
    watched        bool         not null default false, -- somebody follows it: changes are announced
    trace          varchar(200),                        -- a W3C traceparent: whose request this serves
    unread_since   howdah.instant,                      -- since when workers hand it back that cannot read its payload
    finished_on    date         not null default (now() at time zone 'utc')::date
) partition by list (status);

create table howdah.jobs_live partition of howdah.jobs (
    constraint jobs_live_pkey primary key (id)
) for values in ('pending', 'claimed', 'running')
with (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0
);

-- `~priority` turns "highest first" into ascending order without overflowing, so that one
-- row comparison says "behind this job in the line".
create index jobs_ready on howdah.jobs_live (job_type, (~priority), ready_at, id)
    where worker_id is null and ready_at is not null;

create index jobs_waiting on howdah.jobs_live (run_at)
    where worker_id is null and ready_at is null;

-- For recover, which asks who holds what. The verbs of a worker look their jobs up by id and must
-- not take this way, which the planner prefers on a table it knows nothing about: each lease
-- would walk all that the worker holds. `coalesce(worker_id = …, false)` hides it from them. And
-- `id = any (array[l.id])`, where `id = l.id` would do, keeps them from walking the primary key: a
-- table that was analysed when it was empty makes that look cheap.
create index jobs_held on howdah.jobs_live (worker_id)
    where worker_id is not null;

create table howdah.jobs_finished partition of howdah.jobs (
    constraint days_lie_between_the_years_1_and_9999
        check (finished_on between '0002-01-01' and '9998-12-31')
) for values in ('completed', 'failed', 'cancelled')
    partition by range (finished_on);

create index jobs_finished_id on howdah.jobs_finished (id);
create index jobs_finished_badly on howdah.jobs_finished (id) where status <> 'completed';

-- Where a job goes whose day nobody prepared. Upkeep empties it into the right days.
create table howdah.jobs_finished_unprepared partition of howdah.jobs_finished default;
