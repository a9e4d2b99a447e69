-- workers · who is alive: one row per worker, touched every few seconds
--
-- A worker that beats is judged by its beats alone. A foreign worker that never
-- beats has no row here and is judged by `claimed_at`. Who judges must itself have been heard
-- steadily for as long as those may be silent: after an outage nobody is given up for it.

create table howdah.workers (
    id            howdah.worker_name primary key,
    started_at    timestamptz  not null,
    beat_at       timestamptz  not null,
    steady_since  timestamptz  not null,   -- since when its beats have come without a gap
    silent_after  interval     not null,   -- how long it may be silent before it is given up
    given_up_at   timestamptz,             -- set when its jobs were taken away
    info          howdah.json_value not null default '{}'  -- host, pid, version, slots, job types
) with (fillfactor = 50);
