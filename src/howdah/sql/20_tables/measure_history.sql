-- measure_history · what was measured, over time: an hour by the minute, a day by the quarter, a week by two hours
--
-- Filled by compact_measures and sample_waiting, and drawn as charts. Each moment is in one row: what is older
-- than an hour is compacted into one row per type and 15 minutes, after a day into one per type and 2 hours, and
-- deleted after the option keep_measure_history. The sums of howdah.measures do not depend on it.
--
-- A row with the job type '' is the sum of all types, so a chart of all types reads as few rows as a chart of one.

create table howdah.measure_history (
    at              timestamptz       not null,   -- when its time began
    step            interval          not null,   -- how long that was
    job_type        text              not null,   -- '': all types together
    minutes         int               not null default 0,   -- of '' only: in how many of its minutes a worker was alive
    completed       bigint            not null default 0,
    failed          bigint            not null default 0,
    retried         bigint            not null default 0,
    pickup          bigint[]          not null default '{}',   -- histograms as in howdah.measures
    run             bigint[]          not null default '{}',
    pickup_seconds  double precision  not null default 0,
    run_seconds     double precision  not null default 0,
    waiting         bigint,                       -- the most that stood in line at once; null: not counted
    more            bool              not null default false   -- there were more than that
) with (
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 2000
);

create index measure_history_of_type on howdah.measure_history (job_type, at);
