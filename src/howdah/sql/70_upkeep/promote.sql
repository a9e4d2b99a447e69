-- promote · pending (waiting) → pending (in line)
--
-- Puts jobs that are due into the line, in the order of `run_at`.
--
--   returns  the ids this call moved
--
-- Locks the rows it moves (for update skip locked). Wakes idle workers that know the types.

create or replace function howdah.promote(p_limit int default 1000) returns setof uuid
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
    v_moved  uuid[];
    v_types  text[];
begin
    with moved as (
        update howdah.jobs_live as j
        set ready_at = j.run_at
        where j.id = any (array(
            select due.id from howdah.jobs_live as due
            where due.worker_id is null and due.ready_at is null and due.run_at <= howdah.clock()
            order by due.run_at
            limit p_limit
            for update skip locked
        ))
        returning j.id, j.job_type
    )
    select array_agg(id), array_agg(distinct job_type) into v_moved, v_types from moved;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select unnest(v_moved);
end;
$$;
