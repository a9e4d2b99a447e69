-- workers · which workers are alive: one row per worker, updated every few seconds
--
-- Whether a worker is alive is decided by its beats only. A foreign worker that never
-- beats has no row here; for it `claimed_at` decides. A worker that recovers the jobs of others must itself have beaten
-- without a gap for as long as they may be silent. So after an outage no worker is given up because of the outage.

create table howdah.workers (
    id            howdah.worker_name primary key,
    started_at    timestamptz  not null,
    beat_at       timestamptz  not null,
    steady_since  timestamptz  not null,   -- since when its beats have come without a gap
    silent_after  interval     not null,   -- how long it may be silent before it is given up
    given_up_at   timestamptz,             -- set when its jobs were taken away
    info          howdah.json_value not null default '{}'  -- host, pid, version, slots, job types
) with (fillfactor = 50);
