-- drains · the workers that were asked to stop and have not heard of it yet

create table howdah.drains (
    worker_id  text         primary key,
    asked_at   timestamptz  not null
);
