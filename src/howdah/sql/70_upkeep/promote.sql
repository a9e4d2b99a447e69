-- promote · pending (waiting) → pending (in line)
--
-- Puts jobs that are due into the line, in the order of `run_at`. A job that needs a slot waits for that next.
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
    v_requests int;
begin
    with moved as (
        update howdah.jobs_live as j
        set ready_at = case when j.admission is null or (j.admission = 'backoff' and j.limited_by is null) then j.run_at end,
            admission = case when j.admission is null then null
                             when j.admission = 'time' and j.key is not null then 'slot'
                             when j.limited_by is not null then 'limit'
                             else 'admitted' end
        where j.id = any (array(
            select due.id from howdah.jobs_live as due
            where due.worker_id is null and due.ready_at is null and due.run_at <= howdah.clock()
              and (due.admission is null or due.admission = 'time' or due.admission = 'backoff')
            order by due.run_at
            limit p_limit
            for update skip locked
        ))
        returning j.id, j.job_type, j.key, j.limited_by, j.admission
    ), requested as (
        insert into howdah.admission_requests (kind, job_type, name)
        select distinct case m.admission when 'slot' then 'key' else 'limit' end,
               case m.admission when 'slot' then m.job_type::text end,
               case m.admission when 'slot' then m.key else m.limited_by end
        from moved as m where m.admission in ('slot', 'limit')
        returning 1
    )
    select array_agg(id), array_agg(distinct job_type) filter (where coalesce(admission, 'admitted') = 'admitted'),
           (select count(*) from requested)
    into v_moved, v_types, v_requests from moved;
    if v_requests > 0 then
        perform howdah.notify_admission();
    end if;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select unnest(v_moved);
end;
$$;
