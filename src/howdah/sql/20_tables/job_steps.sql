-- job_steps · the steps of jobs: what has ended and is not done again, and what a job waits for
--
-- A row is written when a step has ended, or when a job begins to sleep or to wait for a signal. The rows of a job stay as long as the
-- job, through all attempts and after its end: `prune` deletes them. A job without steps has no row, and no verb reads this table.

create table howdah.job_steps (
    job_id      uuid         not null,
    kind        text         collate "C" not null,  -- step, sleep, signal (a wait for one) or checkpoint
    name        text         collate "C" not null,
    number      int          not null,              -- its number among those of this kind and name, from 1
    function    text,                               -- step: the function that ran
    attempt     int          not null,              -- that began it
    started_at  timestamptz  not null,
    until       timestamptz,                        -- sleep: its end; signal: the timeout
    ended_at    timestamptz,                        -- null: a sleep, or a wait that has not ended
    timed_out   bool         not null default false,
    result      howdah.json_value,                  -- step: what it returned; signal: its data; checkpoint: the data

    constraint job_steps_pkey primary key (job_id, kind, name, number)
) with (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000
);
