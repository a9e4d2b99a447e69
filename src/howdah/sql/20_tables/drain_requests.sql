-- drain_requests · the workers that were asked to stop and have not heard of it yet

create table howdah.drain_requests (
    worker_id     text         primary key,
    requested_at  timestamptz  not null
);
