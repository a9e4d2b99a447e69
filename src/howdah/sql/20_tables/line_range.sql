-- line_range, line_entry · a part of a type's line, and one job in it
--
-- Only functions of 40_claim use these types. No column has them.

-- A range begins after one position (rank, ready_at, id) and ends with the last job of a rank. Rank is
-- `~priority`: see jobs.sql. A whole line is the range from (-2147483648, -infinity, 0…0) to rank 2147483647.
create type howdah.line_range as (
    job_type        text,
    after_rank      int,
    after_ready_at  timestamptz,
    after_id        uuid,
    until_rank      int
);

create type howdah.line_entry as (
    rank      int,
    ready_at  timestamptz,
    id        uuid,
    ctid      tid   -- where its row is in jobs_live
);
