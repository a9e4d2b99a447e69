-- claim · pending → claimed
--
-- Takes the best jobs of a set of stretches of line. It waits for no other worker's transaction, only
-- for its turn to look: see wait_for_turn.sql.
--
-- A stretch is a part of one type's line: it begins behind a job (given by its rank, place
-- and id; rank is `~priority`) and ends with a rank. A whole line is the stretch from
-- (-2147483648, -infinity, 0…0) to rank 2147483647. A worker that has claimed a lane empty
-- up to some job starts behind it: under a long transaction the dead entries before it
-- cannot be cleaned, and walking them is what makes other queues slow down.
--
--   p_worker_id    who claims; half of the lease
--   p_batch_size   how many at most
--   p_job_types, p_after_ranks, p_after_ready_at, p_after_ids, p_until_ranks   the stretches
--   p_in_turn      false: beside the others, for a look that may take long
--   returns        the jobs in claim order: highest priority, then oldest
--
-- With several stretches it looks first, without locking: see peek_best.sql. Then the best are
-- locked, and no job too many: what is locked and left looks taken to another worker, which would then
-- take less urgent ones. What others hold is made up for by the next in line.
--
-- Stretches of a paused type are left out, whoever asks: see 75_steer/pause.sql.
--
-- Locks the rows it takes (for update skip locked), and its turn while it looks. Wakes nobody. A
-- foreign UPDATE that moves a row to jobs_finished while we lock it raises 40001: call again, as
-- claim_job_batch does.

create or replace function howdah.claim(
    p_worker_id     text,
    p_batch_size    int,
    p_job_types     text[],
    p_after_ranks   int[],
    p_after_ready_at  timestamptz[],
    p_after_ids     uuid[],
    p_until_ranks   int[],
    p_in_turn       bool default true
) returns setof howdah.jobs
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
declare
    v_now    timestamptz   := howdah.clock();
    v_types  text[]        := p_job_types;
    v_ranks  int[]         := p_after_ranks;
    v_ready_ats timestamptz[] := p_after_ready_at;
    v_ids    uuid[]        := p_after_ids;
    v_untils int[]         := p_until_ranks;
    v_left   int           := p_batch_size;
    v_best   tid[];        -- where the next jobs to lock lie
    v_rank   int;          -- the last of them
    v_ready_at  timestamptz;
    v_id     uuid;
    v_rows   tid[]         := '{}';
    v_space  int           := howdah.lock_space() + 1;
    v_turn   int           := hashtext(p_job_types[1]);  -- workers of one make ask for the same types
    v_has_turn   bool;         -- whether it is our turn
begin
    if (length(p_worker_id) between 1 and 200 and p_batch_size between 1 and 10000) is not true then
        perform howdah.refuse_claim(p_worker_id, p_batch_size);
    end if;

    -- Of several types often one alone has jobs, and its line can be taken as it stands.
    if cardinality(v_types) > 1 then
        select coalesce(array_agg(s.job_type), '{}'), array_agg(s.rank), array_agg(s.ready_at), array_agg(s.id),
               array_agg(s.until)
        into v_types, v_ranks, v_ready_ats, v_ids, v_untils
        from unnest(v_types, v_ranks, v_ready_ats, v_ids, v_untils) as s (job_type, rank, ready_at, id, until)
        where not exists (select from howdah.paused_types as p where p.job_type = s.job_type)
          and (cardinality(p_job_types) > 64 or exists (
              select from howdah.jobs_live as j
              where j.job_type = s.job_type and j.worker_id is null and j.ready_at is not null
                and (~j.priority, j.ready_at, j.id) > (s.rank, s.ready_at, s.id)
                and ~j.priority <= s.until));
    end if;

    if v_types = '{}' then
        return;
    end if;
    begin
        v_has_turn := p_in_turn and (pg_try_advisory_lock(v_space, v_turn) or howdah.wait_for_turn(v_turn));
        if cardinality(v_types) = 1 then
            v_rows := array(
                select j.ctid from howdah.jobs_live as j
                where j.job_type = v_types[1] and j.worker_id is null and j.ready_at is not null
                  and (~j.priority, j.ready_at, j.id) > (v_ranks[1], v_ready_ats[1], v_ids[1])
                  and ~j.priority <= v_untils[1]
                  and (j.run_at is null or j.run_at <= v_now)
                  and not exists (select from howdah.paused_types where job_type = v_types[1])
                order by ~j.priority, j.ready_at, j.id
                limit p_batch_size
                for update skip locked);
            v_left := 0;
        end if;

        while v_left > 0 loop
            select * into v_best, v_rank, v_ready_at, v_id
            from howdah.peek_best(v_left, v_types, v_ranks, v_ready_ats, v_ids, v_untils, v_now);

            v_rows := v_rows || array(
                select taken.ctid
                from unnest(v_best) as best (ctid)
                cross join lateral (
                    select j.ctid from howdah.jobs_live as j
                    where j.ctid = best.ctid and j.worker_id is null and j.ready_at is not null
                    limit 1
                    for update skip locked
                ) as taken);
            v_left := p_batch_size - cardinality(v_rows);
            exit when v_left = 0 or v_rank is null;

            -- Others hold some of them: go on behind the last.
            select array_agg(begins.rank), array_agg(begins.ready_at), array_agg(begins.id)
            into v_ranks, v_ready_ats, v_ids
            from unnest(v_ranks, v_ready_ats, v_ids) as stretch (rank, ready_at, id)
            cross join lateral (
                select later.rank, later.ready_at, later.id
                from (values (stretch.rank, stretch.ready_at, stretch.id), (v_rank, v_ready_at, v_id))
                         as later (rank, ready_at, id)
                order by later.rank desc, later.ready_at desc, later.id desc
                limit 1
            ) as begins;
        end loop;

        if v_has_turn then
            perform pg_advisory_unlock(v_space, v_turn);
        end if;
        if v_rows = '{}' then
            return;
        end if;
        -- by where the rows lie: they are locked, so nobody can have moved them
        return query
        update howdah.jobs_live as j
        set status = 'claimed', worker_id = p_worker_id, claimed_at = v_now,
            attempts = least(j.attempts, 2147483646) + 1, started_at = null
        from unnest(v_rows) as locked (ctid)
        where j.ctid = locked.ctid
        returning j.*;
    exception when others or query_canceled then
        -- asked of the server: we may be interrupted between the lock and what we know of it
        perform pg_advisory_unlock(v_space, v_turn) from pg_locks
        where pid = pg_backend_pid() and locktype = 'advisory' and granted
          and classid = v_space::oid and objid = v_turn::oid;
        raise;
    end;
end;
$$;
