-- enqueue by plain INSERT · → pending
--
-- `insert into jobs (job_type, priority, data) values …` from any client is a job like
-- any other. After the statement this trigger reads the rows once, as a set, and does
-- what the enqueue functions do for theirs (those write to jobs_live directly and
-- do not fire it). It refuses a row whose status and worker_id contradict each other, and an id that is used again. It
-- takes the unique keys of jobs that have one, and refuses a key that another job holds (HW007). It takes jobs that are not due, or that
-- need a slot, out of the line, sets ready_at to an earlier created_at, enters jobs that were inserted as
-- claimed in jobs_held, counts jobs that were inserted as finished, and wakes idle workers.
--
-- Where the type has registered other defaults, a priority of 100, a max_attempts of 3 and no expires_at count as not
-- set: a trigger cannot distinguish a missing column from one with its default. To get these, call enqueue.

create or replace function howdah.take_plain_insert() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_types   text[];
    v_limited uuid[];
begin
    perform howdah.refuse_used_ids(array(
        select id from inserted where status in ('pending', 'claimed', 'running')));
    -- in the order of the keys, so that two statements wait for each other and never deadlock
    perform howdah.take_inserted_key(i.job_type, i.unique_key, i.id, i.unique_until)
    from (select job_type, unique_key, id, unique_until from inserted
          where unique_key is not null and status in ('pending', 'claimed', 'running')
          order by unique_key, job_type, id) as i;
    perform howdah.refuse_max_attempts((select max(max_attempts) from inserted));
    perform howdah.refuse_holder_mismatch(id, status)
    from inserted
    where status in ('pending', 'claimed', 'running') and (status = 'pending') <> (worker_id is null);

    update howdah.jobs_live as j
    set ready_at = case when j.run_at > howdah.clock() then null else j.created_at end
    where j.id = any (array(
        select id from inserted
        where status = 'pending'
          and ready_at is distinct from case when run_at > howdah.clock() then null else created_at end
    ));

    update howdah.jobs_live as j set held_by = j.worker_id
    where j.id = any (array(
        select id from inserted
        where status in ('pending', 'claimed', 'running') and held_by is distinct from worker_id));

    if exists (select from howdah.job_types as t where t.priority <> 100 or t.max_attempts <> 3 or t.expires is not null) then
        update howdah.jobs_live as j
        set priority = case j.priority when 100 then t.priority else j.priority end,
            max_attempts = case j.max_attempts when 3 then t.max_attempts else j.max_attempts end,
            expires_at = coalesce(j.expires_at, greatest(j.run_at, howdah.clock()) + t.expires)
        from inserted as i join howdah.job_types as t on t.name = i.job_type
        where i.status = 'pending' and j.id = any (array[i.id])
          and ((i.priority = 100 and t.priority <> 100) or (i.max_attempts = 3 and t.max_attempts <> 3)
               or (i.expires_at is null and t.expires is not null));
    end if;

    if exists (select from inserted where key is not null) or exists (select from howdah.type_limits) then
        -- of ended jobs too: they may be requeued
        perform howdah.refuse_key(key) from inserted where key is not null;
        select array_agg(i.id order by i.nth) into v_limited
        from (select *, row_number() over () as nth from inserted) as i
        where i.status in ('pending', 'claimed', 'running')
          and (i.key is not null or exists (select from howdah.type_limits as r where r.job_type = i.job_type));
        if v_limited is not null then
            perform howdah.limit_new(v_limited);
        end if;
    end if;

    insert into howdah.finished_counts (day, job_type, status, jobs)
    select finished_on, job_type, status, count(*) from inserted
    where status in ('completed', 'failed', 'cancelled')
    group by 1, 2, 3;

    v_types := array(
        select distinct job_type from inserted
        where status = 'pending' and (run_at is null or run_at <= howdah.clock())
    );
    if v_types <> '{}' then
        perform howdah.wake(v_types);
    end if;
    perform howdah.notify_due(min(run_at)) from inserted where status = 'pending' and run_at > howdah.clock();
    return null;
end;
$$;

create or replace trigger take_plain_insert
    after insert on howdah.jobs
    referencing new table as inserted
    for each statement execute function howdah.take_plain_insert();
