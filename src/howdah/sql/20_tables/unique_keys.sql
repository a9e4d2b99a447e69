-- unique_keys · which job has a unique key of its type
--
-- The row is a lock and a pointer, not the truth. A transaction that enqueues a job with a key writes or locks the row, so a
-- second one waits for its end. Whether the job still holds the key is read from the job itself: see
-- 30_enqueue/take_unique_key.sql. So no end of a job, by a verb, a plain statement or a lost table, can leave a key taken. A
-- row whose job holds it no more is taken over by the next job, or deleted: by `finish` if nobody has it locked, else by
-- `prune`.

create table howdah.unique_keys (
    unique_key   text         not null,
    job_type     text         not null,
    job_id       uuid         not null,
    holds_until  timestamptz,            -- taken until then, whatever becomes of the job; null: while the job holds it

    constraint unique_keys_pkey primary key (unique_key, job_type)
) with (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000
);
