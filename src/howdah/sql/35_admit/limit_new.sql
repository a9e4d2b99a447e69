-- limit_new · let new jobs wait for what they need before they join the line
--
-- Called in the transaction that has inserted them as plain jobs, so nobody else has seen them. Jobs that need nothing stay as they are.
-- A job that was inserted as held by a worker counts as admitted.
--
--   p_ids  the jobs, in the order of enqueueing
--
-- Locks the rows, which are its own. Wakes as notify_admission.

create or replace function howdah.limit_new(p_ids uuid[]) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_now timestamptz := howdah.clock();
begin
    with new as materialized (
        select n.id, n.nth, j.job_type, j.key, j.run_at, j.worker_id from unnest(p_ids) with ordinality as n (id, nth)
        join howdah.jobs_live as j on j.id = any (array[n.id])
    ), rules as materialized (
        select n.*, f.admission, f.limited_by from new as n
        cross join lateral howdah.first_admission(n.job_type, n.key, coalesce(n.run_at <= v_now, true)) as f
        where f.admission is not null
        order by n.nth
    ), numbered as materialized (
        select r.*, nextval('howdah.arrivals') as arrival from rules as r
    ), waiting as (
        update howdah.jobs_live as j
        set admission = case when n.worker_id is null then n.admission else 'admitted' end, limited_by = n.limited_by,
            arrival = n.arrival, ready_at = case when n.worker_id is null then null else j.ready_at end
        from numbered as n where j.id = any (array[n.id])
        returning j.job_type, j.key, j.limited_by, j.admission
    )
    insert into howdah.admission_requests (kind, job_type, name)
    select distinct case w.admission when 'slot' then 'key' else 'limit' end,
           case w.admission when 'slot' then w.job_type::text end,
           case w.admission when 'slot' then w.key else w.limited_by end
    from waiting as w where w.admission in ('slot', 'limit');
    if found then
        perform howdah.notify_admission();
    end if;
    perform howdah.refuse_key(j.key) from unnest(p_ids) as n (id)
    join howdah.jobs_live as j on j.id = any (array[n.id]) where j.key is not null;
end;
$$;

-- limit_copied · limit_new for what this transaction has written by COPY
--
--   p_first, p_last  the lowest and the highest id
--   p_types          the job types

create or replace function howdah.limit_copied(p_first uuid, p_last uuid, p_types text[]) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
    if exists (select from howdah.type_limits as r where r.job_type = any (p_types)) then
        perform howdah.limit_new(array(
            select j.id from howdah.jobs_live as j
            where j.id between p_first and p_last and j.xmin = pg_current_xact_id()::xid and j.admission is null
              and j.job_type = any (p_types)
            order by j.id));
    end if;
end;
$$;
