-- claim · pending → claimed
--
-- Takes the best jobs of a set of stretches of line, never waiting for another worker.
--
-- A stretch is a part of one type's line: it begins behind a job (given by its rank, place
-- and id; rank is `~priority`) and ends with a rank. A whole line is the stretch from
-- (-2147483648, -infinity, 0…0) to rank 2147483647. A worker that has claimed a lane empty
-- up to some job starts behind it: under a long transaction the dead entries before it
-- cannot be cleaned, and walking them is what makes other queues slow down.
--
--   p_worker_id    who claims; half of the lease
--   p_batch_size   how many at most
--   p_job_types, p_after_ranks, p_after_places, p_after_ids, p_until_ranks   the stretches
--   returns        the jobs in claim order: highest priority, then oldest
--
-- With several stretches it first looks, without locking, how far each has been seen
-- when `share` of its jobs were read; up to the nearest of those points the order of all
-- stretches is known. It locks up to there and no job too many, then goes on behind it,
-- reading more from the stretches that gave much and one from those that gave nothing. So
-- the cost follows the jobs taken, not the jobs waiting.
--
-- Locks the rows it takes (for update skip locked). Wakes nobody. A foreign UPDATE that
-- moves a row to jobs_finished while we lock it raises 40001: the round is done again.

create or replace function howdah.claim(
    p_worker_id     text,
    p_batch_size    int,
    p_job_types     text[],
    p_after_ranks   int[],
    p_after_places  timestamptz[],
    p_after_ids     uuid[],
    p_until_ranks   int[]
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
    v_now      timestamptz := howdah.clock();
    v_left     int         := p_batch_size;
    v_ids      uuid[]      := '{}';
    v_types    text[]      := p_job_types;
    v_ranks    int[]       := p_after_ranks;
    v_places   timestamptz[] := p_after_places;
    v_behind   uuid[]      := p_after_ids;
    v_untils   int[]       := p_until_ranks;
    v_shares   int[];
    v_cut      record;
    v_look     record;
    v_locked   uuid[];
    v_givers   int[];
begin
    if p_worker_id is null or length(p_worker_id) not between 1 and 200 then
        raise exception using errcode = '22023', message = 'p_worker_id must have 1 to 200 characters';
    end if;
    if p_batch_size is null or p_batch_size not between 1 and 10000 then
        raise exception using errcode = '22023',
            message = format('p_batch_size must be between 1 and 10000, not %s', coalesce(p_batch_size::text, 'null'));
    end if;

    v_shares := array_fill(
        greatest(4, 2 * p_batch_size / greatest(1, cardinality(p_job_types))),
        array[cardinality(p_job_types)]);
    while v_left > 0 and cardinality(v_types) > 0 loop
        -- as far as the line goes, unless a look says otherwise
        select 2147483647 as rank, 'infinity'::timestamptz as place,
               'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid as id into v_cut;
        if cardinality(v_types) > 1 then
            -- no further than every stretch has been seen
            select seen.rank, seen.place, seen.id into v_look
            from unnest(v_types, v_ranks, v_places, v_behind, v_untils, v_shares)
                     as stretch (job_type, rank, place, id, until, share)
            cross join lateral (
                select ~j.priority as rank, j.place, j.id
                from howdah.jobs_live as j
                where j.job_type = stretch.job_type and j.worker_id is null and j.place is not null
                  and (~j.priority, j.place, j.id) > (stretch.rank, stretch.place, stretch.id)
                  and ~j.priority <= stretch.until
                order by ~j.priority, j.place, j.id
                offset stretch.share - 1 limit 1
            ) as seen
            order by seen.rank, seen.place, seen.id limit 1;
            if found then
                v_cut := v_look;
            end if;

            -- and no further than the last job that would be taken: what is locked and left looks
            -- taken to another worker, which would then take less urgent ones
            select seen.rank, seen.place, seen.id into v_look
            from unnest(v_types, v_ranks, v_places, v_behind, v_untils)
                     as stretch (job_type, rank, place, id, until)
            cross join lateral (
                select ~j.priority as rank, j.place, j.id
                from howdah.jobs_live as j
                where j.job_type = stretch.job_type and j.worker_id is null and j.place is not null
                  and (~j.priority, j.place, j.id) > (stretch.rank, stretch.place, stretch.id)
                  and (~j.priority, j.place, j.id) <= (v_cut.rank, v_cut.place, v_cut.id)
                  and ~j.priority <= stretch.until
                order by ~j.priority, j.place, j.id
                limit v_left
            ) as seen
            order by seen.rank, seen.place, seen.id
            offset v_left - 1 limit 1;
            if found then
                v_cut := v_look;
            end if;
        end if;

        begin
            select array_agg(taken.id order by taken.rank, taken.place, taken.id),
                   array_agg(taken.nth order by taken.rank, taken.place, taken.id)
            into v_locked, v_givers
            from unnest(v_types, v_ranks, v_places, v_behind, v_untils)
                     with ordinality as stretch (job_type, rank, place, id, until, nth)
            cross join lateral (
                select ~j.priority as rank, j.place, j.id, stretch.nth::int as nth
                from howdah.jobs_live as j
                where j.job_type = stretch.job_type and j.worker_id is null and j.place is not null
                  and (~j.priority, j.place, j.id) > (stretch.rank, stretch.place, stretch.id)
                  and (~j.priority, j.place, j.id) <= (v_cut.rank, v_cut.place, v_cut.id)
                  and ~j.priority <= stretch.until
                  and (j.run_at is null or j.run_at <= v_now)
                order by ~j.priority, j.place, j.id
                limit v_left
                for update skip locked
            ) as taken;
        exception when serialization_failure then
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
            continue;
        end;

        v_ids := v_ids || v_locked[1:v_left];
        v_left := p_batch_size - cardinality(v_ids);
        exit when v_cut.place = 'infinity' or v_left = 0;

        select array_agg(stretch.job_type),
               array_agg(case when ahead then stretch.rank else v_cut.rank end),
               array_agg(case when ahead then stretch.place else v_cut.place end),
               array_agg(case when ahead then stretch.id else v_cut.id end),
               array_agg(stretch.until),
               array_agg(greatest(1, least(4 * coalesce(gave.jobs, 0)::int, v_left)))
        into v_types, v_ranks, v_places, v_behind, v_untils, v_shares
        from unnest(v_types, v_ranks, v_places, v_behind, v_untils)
                 with ordinality as stretch (job_type, rank, place, id, until, nth)
        cross join lateral (
            select (stretch.rank, stretch.place, stretch.id) > (v_cut.rank, v_cut.place, v_cut.id)
        ) as position (ahead)
        left join (select nth, count(*) as jobs from unnest(v_givers) as nth group by nth) as gave
             on gave.nth = stretch.nth
        where stretch.until >= v_cut.rank;
    end loop;

    return query
    with claimed as (
        update howdah.jobs_live as j
        set status = 'claimed', worker_id = p_worker_id, claimed_at = v_now,
            attempts = least(j.attempts, 2147483646) + 1, started_at = null
        where j.id = any (v_ids)
        returning j.*
    )
    select * from claimed order by ~priority, place, id;
end;
$$;
