-- limit_history · how named limits were used, over time: an hour by the minute, a day by the quarter, a week by two hours
--
-- Filled by sample_limits, compacted by compact_limit_history, and drawn as charts. A limit has a row only for a time in which jobs
-- held its slots or waited for it. A limit per key has one row for all its keys. So the number of rows depends on the number of
-- limits alone.
--
-- A row with the name '' says how often the limits were counted in its time. What has no such row is unknown.

create table howdah.limit_history (
    name          text collate "C"  not null,   -- of the limit
    at            timestamptz       not null,   -- when its time began
    step          interval          not null,   -- how long that was
    samples       int               not null default 0,   -- of '' only: how often the limits were counted
    counted_at    timestamptz,                            -- of '' only: when last
    admitted      bigint            not null default 0,   -- the most that held a slot at once
    admitted_sum  bigint            not null default 0,   -- over all samples
    waiting       bigint            not null default 0,   -- the most that waited at once
    more          bool              not null default false,   -- there were more than these
    constraint limit_history_pkey primary key (name, at, step)
) with (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 2000
);
