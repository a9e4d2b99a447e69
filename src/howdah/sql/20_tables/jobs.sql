-- jobs · one relation to query, stored in two parts
--
--   jobs_live        pending, claimed, running: small and often written
--   jobs_finished    completed, failed, cancelled: one partition per day of finishing, so that
--                    old jobs are removed by `drop table` and never by a mass delete
--
-- A job is in line when `ready_at` is set and no worker holds it. The line of a type is
-- the index jobs_ready: highest priority first, then by ready_at, then by id. `ready_at` is the
-- instant at which the job joined the line. It is null while the job waits for `run_at`. It is kept while a worker
-- holds the job, so a released job returns to its old position.
--
-- A claim changes no column that an index mentions, so it stays on its page (HOT): no index is written, and little WAL.
-- So a job that was just claimed is still in jobs_ready, and claims skip it. Most jobs end within milliseconds. A job that
-- runs longer leaves the index when `start` sets `held_by`, and enters jobs_held. Beats, progress and events
-- change no indexed column either. A job with a concurrency key or a limit may have to wait before it joins the line: see 35_admit. The columns that change stand together, at the end: WAL holds only what is between
-- the first and the last changed byte. The fillfactor leaves room for the claimed version of every row.
--
-- Pinned plans. Functions that read jobs_live set planner options for themselves. A session keeps the plan of a
-- function's first call, and then the table may be empty or never analysed. Such a plan could later read the whole
-- table or sort the whole line, when a million jobs wait. So each function allows only the plan that is always good:
--
--   plan_cache_mode = force_generic_plan      one plan for all calls
--   enable_seqscan, enable_bitmapscan = off   read an index, in its order
--   enable_hashjoin, enable_mergejoin = off   a nested loop: find each row by its key
--   enable_sort = off                         the index gives the order
--   jit = off                                 compiling takes longer than the statement
--
-- The options are part of the function. They hold in every session, and in the functions that it calls. tests/plans
-- checks the plans.

create table howdah.jobs (
    id             uuid         not null default howdah.new_id(),
    job_type       howdah.job_name not null,
    priority       int          not null default 100,
    data           howdah.json_object not null default '{}',
    created_at     howdah.instant not null default now(),
    max_attempts   howdah.attempts_allowed not null default 3,
    run_at         howdah.instant,                      -- not before; null: at once
    ready_at       howdah.instant default now(),
    expires_at     howdah.instant,                      -- no attempt begins after it; null: never expires
    last_error     howdah.long_text,
    errors         jsonb        not null default '[]',  -- one entry per attempt that went wrong
    result         howdah.json_value,
    trace          varchar(200),                        -- a W3C traceparent: whose request this serves
    unique_key     howdah.unique_key,                   -- no second job of its type with this key: see unique_keys.sql
    unique_until   howdah.unique_until,                 -- it holds the key until it has started or ended, or for a time; null: ended
    unread_since   howdah.instant,                      -- since when workers hand it back because they cannot read its payload
    -- the next four: see 35_admit. Plain text, because a domain would be checked for every plain job
    key            text collate "C",                    -- the concurrency key
    limited_by     text collate "C",                    -- the name of its limit; with ':' and the key for a limit per key
    admission      text collate "C",                    -- what it waits for: time, slot, backoff or limit; or admitted; null: no limit
    arrival        bigint,                              -- its number in the order of enqueueing
    completed_at   howdah.instant,                      -- when it ended, however it ended
    finished_on    date         not null default (now() at time zone 'utc')::date,
    watched        bool         not null default false, -- somebody follows it: changes are sent by NOTIFY
    status         howdah.job_status not null default 'pending',
    attempts       howdah.attempts_made not null default 0,
    worker_id      howdah.worker_name,                  -- who holds it; with attempts and id: the lease
    claimed_at     howdah.instant,
    started_at     howdah.instant,
    held_by        howdah.worker_name,                  -- its worker_id, once it is in the index jobs_held
    progress       howdah.percent not null default 0,
    current_stage  howdah.long_text,
    events_count   int          not null default 0
) partition by list (status);

create table howdah.jobs_live partition of howdah.jobs (
    constraint jobs_live_pkey primary key (id)
) for values in ('pending', 'claimed', 'running')
with (
    fillfactor = 45,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_analyze_scale_factor = 0.1, autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off  -- it would block the verbs for up to 5 s; upkeep asks for it where it is worth it
);

-- An INSERT converts the default of each column that it does not set to the domain of the column, and checks it. For 16 columns that
-- took a tenth of an enqueue. An element of a constant array has the type of the domain already, so the planner computes it once.
-- Only here: the columns of `jobs` keep the defaults that other programs know.
alter table howdah.jobs_live
    alter column status set default ('{pending}'::howdah.job_status[])[1],
    alter column attempts set default ('{0}'::howdah.attempts_made[])[1],
    alter column progress set default ('{0}'::howdah.percent[])[1];
do $$
declare
    v_column record;
begin
    for v_column in
        select a.attname as name, a.atttypid::regtype as type from pg_attribute as a join pg_type as t on t.oid = a.atttypid
        where a.attrelid = 'howdah.jobs_live'::regclass and t.typtype = 'd' and not a.attnotnull and not a.atthasdef
    loop
        execute format('alter table howdah.jobs_live alter column %I set default (''{}''::%s[])[1]', v_column.name, v_column.type);
    end loop;
end $$;

-- `~priority` (called rank) sorts the highest priority first in ascending order and cannot overflow, so one
-- row comparison means "after this job in the line".
-- No two entries are equal, so deduplication would read each full page in vain.
create index jobs_ready on howdah.jobs_live (job_type, (~priority), ready_at, id)
    with (deduplicate_items = off)
    where held_by is null and ready_at is not null;

create index jobs_waiting on howdah.jobs_live (run_at)
    where ready_at is null and (admission is null or admission = 'time' or admission = 'backoff');

-- Jobs with a key or a limit, in the order in which they are admitted. A job holds a slot of its key while `admission` is
-- 'admitted', 'backoff' or 'limit': the values below 'slot'. An admitted job that a worker holds while its ready_at is null is in a run, and holds
-- the slot together with others: see 35_admit/claim_run.sql. When it goes back to 'slot' it keeps its claimed_at, so that its delay blocks its key.
create index jobs_by_key on howdah.jobs_live (job_type, key, admission, (~priority), arrival)
    where admission is not null and key is not null;
create index jobs_by_limit on howdah.jobs_live (limited_by, admission, (~priority), arrival)
    where admission is not null and limited_by is not null;

-- For expire. Almost always empty: it has only jobs that may expire, until `start` marks them as running.
create index jobs_expiring on howdah.jobs_live (expires_at)
    where expires_at is not null and held_by is null;

-- For recover and for people, who search by worker. Jobs of foreign workers enter it when they are claimed, others when
-- `start` marks them as running. The jobs that a worker claimed in its last quarter of a second may be missing. When a worker is
-- lost, recover reads the whole table once for them.
create index jobs_held on howdah.jobs_live (held_by)
    where held_by is not null;

-- The verbs of a worker search by id. `id = any (array[l.id])` instead of `id = l.id` prevents a scan of the whole
-- primary key, which seems cheap on a table that was analysed when it was empty.

create table howdah.jobs_finished partition of howdah.jobs (
    constraint days_lie_between_the_years_1_and_9999
        check (finished_on between '0002-01-01' and '9998-12-31')
) for values in ('completed', 'failed', 'cancelled')
    partition by range (finished_on);

create index jobs_finished_id on howdah.jobs_finished (id);
create index jobs_finished_badly on howdah.jobs_finished (id) where status <> 'completed';

-- Jobs whose day has no partition yet. prepare_days moves them to the right day.
create table howdah.jobs_finished_unprepared partition of howdah.jobs_finished default;
