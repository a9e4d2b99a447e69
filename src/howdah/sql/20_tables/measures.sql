-- measures · how many attempts ended how, how long they waited and how long they ran
--
-- Append-only: each worker adds one row per job type every few seconds, so that nobody waits
-- for a counter. compact_measures adds them up: after a minute or two into one row per type and minute
-- (worker_id ''), after the option keep_measures into one row per type for everything before
-- (at -infinity). The sum over all rows of a type therefore never decreases.
--
-- `pickup` and `run` are histograms: the n-th number counts the times up to 0.5 ms * 2^((n-1)/2),
-- the 56th all that were longer. Zeros at the end may be left out.

create table howdah.measures (
    at              timestamptz       not null,   -- when its time ended
    worker_id       text              not null,
    job_type        howdah.job_name   not null,
    completed       bigint            not null default 0,
    failed          bigint            not null default 0,   -- for good
    retried         bigint            not null default 0,   -- failed attempts that are tried again
    cancelled       bigint            not null default 0,   -- by their handler
    released        bigint            not null default 0,   -- put off by their handler
    pickup          bigint[]          not null default '{}',
    run             bigint[]          not null default '{}',
    pickup_seconds  double precision  not null default 0,   -- the sum of all
    run_seconds     double precision  not null default 0,

    constraint worker_id_is_at_most_200_characters check (length(worker_id) <= 200),
    constraint counts_are_not_negative
        check (least(completed, failed, retried, cancelled, released) >= 0),
    constraint histograms_have_at_most_56_numbers
        check (cardinality(pickup) <= 56 and cardinality(run) <= 56),
    constraint sums_of_seconds_are_finite_and_not_negative
        check (least(pickup_seconds, run_seconds) >= 0
               and greatest(pickup_seconds, run_seconds) < 'infinity')
) with (
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 2000
);

create index measures_at on howdah.measures (at);
