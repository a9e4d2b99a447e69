-- finished_counts · how many jobs ended with which status, without scanning the history
--
-- Append-only differences, written in the transaction that ends (or revives) the jobs,
-- so they are exact. Upkeep compacts them. Never updated in place: with one counter
-- row all workers would wait for each other.

create table howdah.finished_counts (
    day       date    not null,
    job_type  text    not null,
    status    text    not null,
    jobs      bigint  not null
);
