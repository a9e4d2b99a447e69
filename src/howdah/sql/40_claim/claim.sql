-- claim · pending → claimed
--
-- Takes the best jobs of some ranges of the line. It does not wait for the transaction of another worker. It
-- waits only for its turn to search: see wait_for_turn.sql.
--
-- A range is a part of one type's line: see 20_tables/line_range.sql. A worker that has claimed all jobs of a lane up
-- to some position starts after it. Under a long transaction the dead index entries before that position cannot be
-- removed, and reading them again and again is what makes other queues slow.
--
--   p_worker_id    who claims; a part of the lease
--   p_batch_size   how many jobs at most
--   p_job_types, p_after_ranks, p_after_ready_at, p_after_ids, p_until_ranks   the ranges, one per element
--   p_in_turn      false: search without a turn, for a search that may take long
--   p_foreign      true: the jobs enter jobs_held at once, because their worker may never call start
--   returns        the jobs in claim order: highest priority first, then the oldest
--
-- Paused types are left out, whoever asks: see 75_steer/pause.sql. So are jobs that have expired, also where upkeep has
-- not cancelled them yet: see 70_upkeep/expire.sql.
--
-- Locks the rows it takes (for update skip locked), and its turn while it searches. Wakes nobody. A plain
-- UPDATE that moves a row to jobs_finished while we lock it raises 40001: call again, as claim_job_batch does.

create or replace function howdah.claim(
    p_worker_id       text,
    p_batch_size      int,
    p_job_types       text[],
    p_after_ranks     int[],
    p_after_ready_at  timestamptz[],
    p_after_ids       uuid[],
    p_until_ranks     int[],
    p_in_turn         bool default true,
    p_foreign         bool default false
) returns setof howdah.jobs
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
declare
    v_now      howdah.instant     := howdah.clock();  -- of the types of their columns: other values are checked
    v_worker   howdah.worker_name;                     -- again for every row
    v_claimed  howdah.job_status  := 'claimed';
    v_ranges   howdah.line_range[];
    v_locked   tid[];
    v_space    int         := howdah.lock_space() + 1;
    v_turn     int         := hashtext(p_job_types[1]);  -- workers with the same code ask for the same types
    v_has_turn bool;
begin
    if (length(p_worker_id) between 1 and 200 and p_batch_size between 1 and 10000) is not true then
        perform howdah.refuse_claim(p_worker_id, p_batch_size);
    end if;
    v_worker := p_worker_id;

    if cardinality(p_job_types) = 1 then
        v_ranges := array[row(p_job_types[1], p_after_ranks[1], p_after_ready_at[1], p_after_ids[1],
                              p_until_ranks[1])::howdah.line_range];
    else
        -- often only one of several types has jobs, and then its line is locked in its order
        v_ranges := array(
            select r::howdah.line_range
            from unnest(p_job_types, p_after_ranks, p_after_ready_at, p_after_ids, p_until_ranks)
                     as r (job_type, after_rank, after_ready_at, after_id, until_rank)
            where not exists (select from howdah.paused_types as p where p.job_type = r.job_type)
              and (cardinality(p_job_types) > 64 or exists (
                  select from howdah.jobs_live as j
                  where j.job_type = r.job_type and j.held_by is null and j.worker_id is null and j.ready_at is not null
                    and (~j.priority, j.ready_at, j.id) > (r.after_rank, r.after_ready_at, r.after_id)
                    and ~j.priority <= r.until_rank)));
    end if;
    if cardinality(v_ranges) = 0 then
        return;
    end if;

    begin
        v_has_turn := p_in_turn and (pg_try_advisory_lock(v_space, v_turn) or howdah.wait_for_turn(v_turn));
        v_locked := howdah.lock_best(p_batch_size, v_ranges, v_now);
        if v_has_turn then
            perform pg_advisory_unlock(v_space, v_turn);
        end if;
        if v_locked = '{}' then
            return;
        end if;
        -- found by ctid: the rows are locked, so nobody can have moved them
        return query
        update howdah.jobs_live as j
        set status = v_claimed, worker_id = v_worker, claimed_at = v_now,
            held_by = case when p_foreign then v_worker end,
            attempts = least(j.attempts, 2147483646) + 1, started_at = null
        from unnest(v_locked) as locked (ctid)
        where j.ctid = locked.ctid
        returning j.*;
    exception when others or query_canceled then
        -- pg_locks knows whether we have the turn: we may be cancelled before v_has_turn is set
        perform pg_advisory_unlock(v_space, v_turn) from pg_locks
        where pid = pg_backend_pid() and locktype = 'advisory' and granted
          and classid = v_space::oid and objid = v_turn::oid;
        raise;
    end;
end;
$$;
