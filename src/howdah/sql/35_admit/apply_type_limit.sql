-- apply_type_limit · let the live jobs of a type follow its rule
--
-- For jobs whose named limit is another now, and for jobs that had nothing to wait for and have now, or the other way round. How many slots a key has is not
-- in the row: that follows with the requests. A transaction that is open may still enqueue by the old rule, or claim a job that is locked
-- now. So admit calls this once more when all transactions of today's rule are over.
--
--   p_again  false: this is that second call
--
-- Reads jobs_live once, about 0.2 s per million jobs. Locks the rows it changes (skip locked). Wakes as notify_admission.

create or replace function howdah.apply_type_limit(p_job_type text, p_again bool default true) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = on
set jit = off
as $$
declare
    v_now     timestamptz := howdah.clock();
    v_keyed   text := (select f.admission from howdah.first_admission(p_job_type, 'any', true) as f);
    v_keyless record;  -- for the whole type: asked for each job, it took most of the time
begin
    select f.admission, f.limited_by, f.limited_by like '%:' as per_key into v_keyless
    from howdah.first_admission(p_job_type, null, true) as f;
    with other as materialized (
        select j.id, j.limited_by as before, f.limited_by, f.admission as first
        from howdah.jobs_live as j
        cross join lateral (
            select case when j.key is null then v_keyless.admission else v_keyed end as admission,
                   case when v_keyless.per_key then v_keyless.limited_by || coalesce(j.key, '')
                        else v_keyless.limited_by end as limited_by) as f
        where j.job_type = p_job_type
          and (j.limited_by is distinct from f.limited_by or (j.admission is null) <> (f.admission is null))
        order by j.id
        for update of j skip locked
    ), numbered as materialized (
        select o.*, nextval('howdah.arrivals') as arrival from other as o
    ), changed as (
        update howdah.jobs_live as j
        set limited_by = n.limited_by,
            arrival = coalesce(j.arrival, n.arrival),
            admission = case when n.first is null then null
                             when j.worker_id is not null then 'admitted'
                             when j.admission is null then case when j.run_at > v_now then 'time' else n.first end
                             when j.admission in ('limit', 'admitted')
                             then case when n.limited_by is null then 'admitted' else 'limit' end
                             else j.admission end,
            ready_at = case when j.worker_id is not null then j.ready_at
                            when j.run_at > v_now then null
                            when n.first is null or (j.admission in ('limit', 'admitted') and n.limited_by is null)
                            then coalesce(j.ready_at, greatest(now(), j.run_at)) end
        from numbered as n where j.id = n.id
        returning n.before, j.limited_by
    ), lowered as (  -- more than at_once of them may be running: hand no slot over before few enough do
        update howdah.limits as l set counted = true
        where l.at_once is not null and l.name in (select split_part(c.limited_by, ':', 1) from changed as c)
    )
    insert into howdah.admission_requests (kind, name)
    select 'limit', c.before from changed as c where c.before is not null
    union
    select 'limit', c.limited_by from changed as c where c.limited_by is not null;
    insert into howdah.admission_requests (kind, job_type, name) values ('type', p_job_type, '');
    if p_again then
        insert into howdah.admission_requests (kind, job_type) values ('rule', p_job_type);
    end if;
    perform howdah.wake(array[p_job_type]), howdah.notify_admission();
end;
$$;
