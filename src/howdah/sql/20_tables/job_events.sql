-- job_events · what a running job emitted, numbered per job, in day partitions
--
-- Append-only. `number` rises by one per job without gaps. A reader that has seen
-- number n asks for larger ones: it misses nothing and repeats nothing.

create table howdah.job_events (
    job_id      uuid         not null,
    number      int          not null,
    kind        howdah.long_text  not null,
    data        howdah.json_value not null default 'null',
    attempt     int          not null,
    created_at  timestamptz  not null,
    day         date         not null
) partition by range (day);

create unique index job_events_number on howdah.job_events (job_id, number, day);

create table howdah.job_events_unprepared partition of howdah.job_events default;
