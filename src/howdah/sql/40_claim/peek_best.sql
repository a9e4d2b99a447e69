-- peek_best · the best jobs of several ranges of the line, without a lock
--
-- Reads the next jobs of each range, up to a share. The best of these are the best of all, with one
-- exception: a range whose share ended before the last of them may hold better ones. Only such ranges are read
-- again, from where their share ended and for twice as many jobs, until no range is left. So the cost depends on
-- the number of ranges and of jobs asked for. It does not depend on how many jobs wait, or in which ranges.
--
--   p_limit   how many jobs at most
--   p_ranges  the ranges to read
--   p_now     jobs that are due later, or have expired, are left out
--   returns   the best jobs in claim order; fewer than p_limit when there are no more
--
-- Called by lock_best only: it runs with the rights and the pinned plans of claim. Locks nothing.

create or replace function howdah.peek_best(p_limit int, p_ranges howdah.line_range[], p_now timestamptz)
returns howdah.line_entry[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_share  int                 := greatest(1, 2 * p_limit / cardinality(p_ranges));
    v_ranges howdah.line_range[] := p_ranges;
    v_best   howdah.line_entry[] := '{}';
begin
    loop
        with seen as materialized (
            select range.nth, next.*
            from unnest(v_ranges) with ordinality
                     as range (job_type, after_rank, after_ready_at, after_id, until_rank, nth)
            cross join lateral (
                select line.*, row_number() over () as step
                from (
                    select ~j.priority as rank, j.ready_at, j.id, j.ctid
                    from howdah.jobs_live as j
                    where j.job_type = range.job_type and j.held_by is null and j.worker_id is null and j.ready_at is not null
                      and (~j.priority, j.ready_at, j.id) > (range.after_rank, range.after_ready_at, range.after_id)
                      and ~j.priority <= range.until_rank
                      and (j.run_at is null or j.run_at <= p_now) and (j.expires_at is null or j.expires_at > p_now)
                    order by ~j.priority, j.ready_at, j.id
                    limit v_share
                ) as line
            ) as next
        ), best as materialized (
            select rank, ready_at, id, ctid from seen
            union all
            select * from unnest(v_best)
            order by 1, 2, 3
            limit p_limit
        ), last as (
            select rank, ready_at, id from best offset p_limit - 1
        ), unfinished as (
            select * from seen
            where step = v_share
              and ((select id from last) is null
                   or (rank, ready_at, id) < ((select rank from last), (select ready_at from last), (select id from last)))
        )
        select array(select row(rank, ready_at, id, ctid)::howdah.line_entry from best),
               array(select row((v_ranges[nth]).job_type, rank, ready_at, id, (v_ranges[nth]).until_rank)::howdah.line_range
                     from unfinished)
        into v_best, v_ranges;

        exit when cardinality(v_ranges) = 0;
        v_share := least(2 * v_share, p_limit);
    end loop;
    return v_best;
end;
$$;
