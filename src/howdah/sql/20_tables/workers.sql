-- workers · who is alive: one row per worker, touched every few seconds
--
-- A worker that beats is judged by its beats alone. A worker of another make that never
-- beats has no row here and is judged by `claimed_at`.

create table howdah.workers (
    id            text         primary key,
    started_at    timestamptz  not null,
    beat_at       timestamptz  not null,
    silent_after  interval     not null,   -- how long it may be silent before it is given up
    given_up_at   timestamptz,             -- set when its jobs were taken away
    info          jsonb        not null default '{}'  -- host, pid, version, slots, job types
) with (fillfactor = 50);
