-- drain_requests · workers that were asked to stop and do not know it yet

create table howdah.drain_requests (
    worker_id     text         primary key,
    requested_at  timestamptz  not null
);
