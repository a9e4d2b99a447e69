-- finished_counts · how many jobs ended how, without ever scanning the history
--
-- Append-only differences, written in the transaction that ends (or revives) the jobs,
-- so they are exact; upkeep folds them together. Never updated in place: a hot counter
-- row would make all workers wait for each other.

create table howdah.finished_counts (
    day       date    not null,
    job_type  text    not null,
    status    text    not null,
    jobs      bigint  not null
);
