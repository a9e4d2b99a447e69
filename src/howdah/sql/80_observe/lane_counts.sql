-- lane_counts · how many jobs are in line per type and priority, and since when the first
--
-- A lane is a type with a priority. Reads the index jobs_ready from lane to lane and counts at most p_cap jobs of a
-- type, however many wait.
--
--   p_cap       how many jobs of a type are counted at most
--   p_lanes     how many lanes are read at most
--   p_job_type  one type alone; null: all
--   returns     jobs: how many were counted; null where the cap was reached before this lane
--               more: the lane is longer than that
--               first_ready_at: since when the first job of the lane is in line; null where none is
--               claimed: how many were claimed a moment ago, and are not in jobs_held yet
--
-- Locks nothing. Under a long transaction it also reads the dead entries before each lane, once, so give
-- the statement a timeout.

create or replace function howdah.lane_counts(p_cap int default 10000, p_lanes int default 1000, p_job_type text default null)
returns table (job_type text, priority int, jobs int, more bool, first_ready_at timestamptz,
               claimed int)
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_type  text   := coalesce(p_job_type, '');
    v_rank  bigint := -2147483649;
    v_left  int    := p_cap;
    v_found record;
    v_read  int;
begin
    for n in 1 .. p_lanes loop
        select j.job_type, ~j.priority as rank, j.ready_at, j.id into v_found
        from howdah.jobs_live as j
        where (j.job_type, ~j.priority) > (v_type, v_rank) and j.held_by is null and j.ready_at is not null
        order by j.job_type, ~j.priority, j.ready_at, j.id
        limit 1;
        exit when not found or v_found.job_type <> p_job_type;
        if v_found.job_type <> v_type then
            v_left := p_cap;
        end if;
        v_type := v_found.job_type;
        v_rank := v_found.rank;
        job_type := v_type;
        priority := ~v_found.rank;
        if v_left > 0 then
            -- from the first job on: the dead entries before it were read once, and that is enough
            select count(*), count(*) filter (where worker_id is null), min(lane.ready_at) filter (where worker_id is null)
            into v_read, jobs, first_ready_at from (
                select j.worker_id, j.ready_at from howdah.jobs_live as j
                where j.job_type = v_type and j.held_by is null and j.ready_at is not null
                  and (~j.priority, j.ready_at, j.id) >= (v_found.rank, v_found.ready_at, v_found.id)
                  and ~j.priority <= v_found.rank
                order by ~j.priority, j.ready_at, j.id
                limit v_left + 1
            ) as lane;
            claimed := v_read - jobs;
            more := v_read > v_left;
            jobs := least(jobs, v_left);
            if more then
                first_ready_at := coalesce(first_ready_at, v_found.ready_at);
            end if;
            v_left := v_left - least(v_read, v_left);
        else
            jobs := null;
            claimed := 0;
            more := true;
            first_ready_at := v_found.ready_at;
        end if;
        return next;
    end loop;
end;
$$;
