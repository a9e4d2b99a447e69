-- lock_best · find the best jobs of some ranges of the line and lock them
--
-- One range is locked in its order. For several ranges it first reads, without a lock, which jobs are the best:
-- see peek_best.sql. Then it locks these and no others. A job that is locked but not taken would look taken to
-- another worker, which would then take less urgent jobs. For jobs that other workers hold it takes the next in line.
--
--   p_limit   how many jobs at most
--   p_ranges  the ranges, at least one
--   p_now     jobs that are due later, or have expired, are left out
--   returns   where the locked rows are in jobs_live, in claim order
--
-- Called by claim only: it runs with the rights and the pinned plans of claim. A single range of a paused type gives
-- nothing; claim leaves out paused types where there are several. Locks the rows it returns (for update skip locked).

create or replace function howdah.lock_best(p_limit int, p_ranges howdah.line_range[], p_now timestamptz)
returns tid[]
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_ranges howdah.line_range[] := p_ranges;
    v_range  howdah.line_range   := p_ranges[1];
    v_best   howdah.line_entry[];
    v_last   howdah.line_entry;
    v_left   int                 := p_limit;
    v_locked tid[]               := '{}';
begin
    if cardinality(p_ranges) = 1 then
        return array(
            select j.ctid from howdah.jobs_live as j
            where j.job_type = v_range.job_type and j.held_by is null and j.worker_id is null and j.ready_at is not null
              and (~j.priority, j.ready_at, j.id) > (v_range.after_rank, v_range.after_ready_at, v_range.after_id)
              and ~j.priority <= v_range.until_rank
              and (j.run_at is null or j.run_at <= p_now) and (j.expires_at is null or j.expires_at > p_now)
              and not exists (select from howdah.paused_types where job_type = v_range.job_type)
            order by ~j.priority, j.ready_at, j.id
            limit p_limit
            for update skip locked);
    end if;

    loop
        v_best := howdah.peek_best(v_left, v_ranges, p_now);
        v_locked := v_locked || array(
            select taken.ctid
            from unnest(v_best) as best
            cross join lateral (
                select j.ctid from howdah.jobs_live as j
                where j.ctid = best.ctid and j.held_by is null and j.worker_id is null and j.ready_at is not null
                limit 1
                for update skip locked
            ) as taken);
        exit when cardinality(v_locked) = p_limit or cardinality(v_best) < v_left;

        -- other workers hold some of them: continue after the last one
        v_left := p_limit - cardinality(v_locked);
        v_last := v_best[cardinality(v_best)];
        v_ranges := array(
            select case when (r.after_rank, r.after_ready_at, r.after_id) < (v_last.rank, v_last.ready_at, v_last.id)
                        then row(r.job_type, v_last.rank, v_last.ready_at, v_last.id, r.until_rank)::howdah.line_range
                        else r end
            from unnest(v_ranges) as r);
    end loop;
    return v_locked;
end;
$$;
