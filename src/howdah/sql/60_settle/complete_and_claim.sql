-- complete_and_claim · claimed, running → completed, and pending (waits for a slot) → claimed
--
-- As complete. The jobs that get the slots of these are claimed for the same worker at once. For a worker that has found the
-- line empty and has room for as many jobs: otherwise these would overtake others that are in line.
--
--   p_worker_id, p_ids, p_attempts, p_results, p_began_ago   as in complete
--   p_job_types  what it may claim
--   returns      the jobs that it claimed, in claim order, at most one for each slot. A stale id is returned, too, as a row
--                without a status
--
-- Paused types are left out, and jobs that have expired. Locks and wakes as finish does.

create or replace function howdah.complete_and_claim(
    p_worker_id  text,
    p_ids        uuid[],
    p_attempts   int[],
    p_results    jsonb[],
    p_began_ago  interval[],
    p_job_types  text[]
) returns setof howdah.jobs
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_moved  uuid[] := array(select howdah.finish('completed', p_worker_id, p_ids, p_attempts, null, null, p_results, p_began_ago,
                                                  p_claims => p_job_types));
    v_end    int    := array_position(v_moved, null);
begin
    return query
    select j.* from unnest(v_moved[v_end + 1 :]) as c (id)
    join howdah.jobs_live as j on j.id = any (array[c.id])
    order by ~j.priority, j.ready_at, j.id;

    if coalesce(v_end - 1, cardinality(v_moved)) < cardinality(p_ids) then
        return query
        select s.* from unnest(p_ids) as l (id)
        cross join lateral jsonb_populate_record(null::howdah.jobs, jsonb_build_object('id', l.id)) as s
        where l.id <> all (v_moved[: coalesce(v_end - 1, cardinality(v_moved))]);
    end if;
end;
$$;
