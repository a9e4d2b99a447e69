-- settle by plain UPDATE
--
-- `update jobs set status = 'completed', …` from any client works. These
-- triggers set the columns that such a statement does not know. howdah's own verbs set
-- all of them, so for them the conditions are false and the functions do not run. Every statement plans
-- the condition again: one without a function call costs half as much.

-- live rows: finished, put back without resetting all columns, or held by no worker
create or replace function howdah.take_plain_update() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_due  bool;
begin
    if new.status = 'pending' then
        v_due := not coalesce(new.run_at > howdah.clock(), false);
        new.worker_id := null;
        new.held_by := null;
        if old.worker_id is not null and old.admission = 'admitted' and old.ready_at is null then  -- of a run: as in retry
            new.claimed_at := old.claimed_at;
            new.ready_at := null;
            new.admission := 'slot';
            perform howdah.request_look(new.job_type, new.key, new.limited_by);
            return new;
        end if;
        new.claimed_at := null;
        new.ready_at := case when v_due then coalesce(new.ready_at, now()) end;
        if old.admission = 'admitted' and (old.worker_id is not null or not v_due) then
            -- as in retry; the slots that it gives back are left to admit
            if not v_due then
                new.admission := case when new.key is not null and howdah.is_ordered(new.job_type) then 'backoff' else 'time' end;
            elsif new.limited_by is not null then
                new.admission := 'limit';
                new.ready_at := null;
            end if;
            if new.admission <> 'admitted' then
                perform howdah.request_look(new.job_type, new.key, new.limited_by);
            end if;
        elsif new.admission <> 'admitted' then
            new.ready_at := null;
        end if;
        return new;
    elsif new.status in ('claimed', 'running') then
        if new.worker_id is null then
            perform howdah.refuse_holder_mismatch(new.id, new.status);
        elsif old.worker_id is null and old.admission <> 'admitted' then
            return null;  -- a plain claim of a job that waits for a slot changes nothing
        end if;
        return new;
    end if;
    if old.admission is not null then
        new.admission := null;
        perform howdah.request_look(old.job_type, old.key, old.limited_by);
    end if;
    new.finished_on := howdah.today();
    new.completed_at := coalesce(new.completed_at, howdah.clock());
    new.ready_at := null;
    new.held_by := null;
    insert into howdah.finished_counts (day, job_type, status, jobs)
    values (new.finished_on, new.job_type, new.status, 1);
    if new.watched then
        new.watched := false;
        perform howdah.notify_followers(array[new.id]);
    end if;
    return new;
end;
$$;

create or replace trigger take_plain_update
    before update on howdah.jobs_live
    for each row
    when (new.status in ('completed', 'failed', 'cancelled')
          or (new.status = 'pending') = (new.worker_id is not null)
          or (new.status = 'pending'
              and (new.held_by is not null
                   or (new.ready_at is null and new.run_at is null and new.admission is null)
                   or (new.ready_at is null and new.admission = 'admitted')  -- it was in a run
                   or new.run_at > new.ready_at))  -- after it joined the line: perhaps not due
          or (new.ready_at is null and new.worker_id is not null and new.admission <> 'admitted'))  -- a plain claim of a job that waits
    execute function howdah.take_plain_update();

-- finished rows: made live again, or given another final status
create or replace function howdah.take_plain_revival() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into howdah.finished_counts (day, job_type, status, jobs)
    values (old.finished_on, old.job_type, old.status, -1);
    if new.unique_key is not null and new.unique_until is distinct from 'time'
       and new.status not in ('completed', 'failed', 'cancelled') then
        perform howdah.take_inserted_key(new.job_type, new.unique_key, new.id, new.unique_until);
    end if;
    if new.status in ('completed', 'failed', 'cancelled') then
        insert into howdah.finished_counts (day, job_type, status, jobs)
        values (new.finished_on, new.job_type, new.status, 1);
    elsif new.status = 'pending' then
        new.worker_id := null;
        new.held_by := null;
        new.claimed_at := null;
        new.completed_at := null;
        new.ready_at := case when new.run_at > howdah.clock() then null else now() end;
        new.max_attempts := greatest(new.max_attempts, least(new.attempts, 2147483646) + 1);
        if new.expires_at <= howdah.clock() then
            new.expires_at := null;
        end if;
        select f.admission, f.limited_by into new.admission, new.limited_by
        from howdah.first_admission(new.job_type, new.key, new.ready_at is not null) as f;
        if new.admission is not null then
            new.ready_at := null;
            new.arrival := nextval('howdah.arrivals');
            perform howdah.request_look(new.job_type, new.key, new.limited_by);
        end if;
    elsif new.worker_id is null then
        perform howdah.refuse_holder_mismatch(new.id, new.status);
    end if;
    return new;
end;
$$;

create or replace trigger take_plain_revival
    before update on howdah.jobs_finished
    for each row when (new.status is distinct from old.status)
    execute function howdah.take_plain_revival();

-- finished rows: deleted, by hand or by requeue. Once per statement and not per row: row
-- triggers would also fire for a row that an UPDATE moves to another partition, and for
-- rows that prepare_days moves to their day, and count them as deleted.
create or replace function howdah.take_plain_delete() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    insert into howdah.finished_counts (day, job_type, status, jobs)
    select finished_on, job_type, status, -count(*) from deleted
    where status in ('completed', 'failed', 'cancelled')
    group by 1, 2, 3;
    insert into howdah.admission_requests (kind, job_type, name)
    select distinct g.* from deleted as d
    cross join lateral (values ('key', d.job_type::text, d.key), ('limit', null, d.limited_by)) as g (kind, job_type, name)
    where d.admission < 'slot' and g.name is not null;
    if found then
        perform howdah.notify_admission();
    end if;
    return null;
end;
$$;

create or replace trigger take_plain_delete
    after delete on howdah.jobs
    referencing old table as deleted
    for each statement execute function howdah.take_plain_delete();

create or replace trigger take_plain_delete
    after delete on howdah.jobs_finished
    referencing old table as deleted
    for each statement execute function howdah.take_plain_delete();

-- after a plain UPDATE, once per statement: jobs that a foreign worker took enter jobs_held, jobs that are in line
-- again wake idle workers, and followers of watched jobs are notified. Where a job was put back that others follow in a run, these go
-- back too: see take_back_runs. The verbs write to jobs_live and do not fire this trigger.
create or replace function howdah.notify_plain_update() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_types  text[];
    v_back   text[];  -- types of jobs that were put back and have a key
    v_keys   text[];
    v_first  bigint[];
begin
    with pending as (
        select c.job_type::text, c.key, c.arrival, c.ready_at is not null as in_line,
               c.key is not null and (c.admission < 'slot' or (c.admission = 'slot' and c.claimed_at is not null)) as back
        from changed as c where c.status = 'pending' and c.worker_id is null
    )
    select array_agg(distinct p.job_type) filter (where p.in_line), array_agg(p.job_type) filter (where p.back),
           array_agg(p.key) filter (where p.back), array_agg(p.arrival) filter (where p.back)
    into v_types, v_back, v_keys, v_first from pending as p;
    update howdah.jobs_live as j set held_by = j.worker_id
    where j.id = any (array(
        select id from changed
        where status in ('claimed', 'running') and held_by is distinct from worker_id));
    if v_back is not null then
        perform howdah.take_back_runs(v_back, v_keys, v_first);
    end if;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    perform howdah.notify_due(min(run_at)) from changed
    where status = 'pending' and worker_id is null and ready_at is null and run_at is not null;
    perform howdah.notify_followers(array(select id from changed where watched));
    return null;
end;
$$;

-- take_back_runs · claimed, running → pending: the jobs of a run that follow a job which somebody has put back
--
-- Their worker must not run them before that job has run again, so it loses them. Their attempts count: perhaps one of them has begun.
--
--   p_job_types, p_keys, p_first  the jobs that were put back: type, key and arrival
--
-- Locks the rows in id order. Wakes those who follow these jobs, and as request_look.

create or replace function howdah.take_back_runs(p_job_types text[], p_keys text[], p_first bigint[]) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_ids uuid[];
begin
    loop  -- their worker may claim more until the last one is locked
        with next as materialized (
            select distinct j.id
            from unnest(p_job_types, p_keys, p_first) as b (job_type, key, arrival)
            cross join lateral (
                select r.id from howdah.jobs_live as r
                where r.job_type = b.job_type and r.key = b.key and r.key is not null
                  and r.admission = 'admitted' and r.admission is not null
                  and r.worker_id is not null and r.ready_at is null and r.arrival > b.arrival) as j
        ), locked as materialized (
            select j.id from howdah.jobs_live as j
            where j.id = any (array(select n.id from next as n)) and j.worker_id is not null and j.ready_at is null
            order by j.id for update
        ), moved as (
            update howdah.jobs_live as j
            set status = 'pending', worker_id = null, held_by = null, started_at = null, admission = 'slot'
            from locked as l where j.id = any (array[l.id])
            returning j.id, j.job_type, j.key, j.limited_by
        ), requested as (
            select howdah.request_look(s.job_type, s.key, s.limited_by)
            from (select distinct m.job_type::text, m.key, m.limited_by from moved as m) as s
        )
        select array_agg(m.id), (select count(*) from requested) into v_ids from moved as m;
        exit when v_ids is null;
        perform howdah.notify_followers(v_ids);
    end loop;
end;
$$;

create or replace trigger notify_plain_update
    after update on howdah.jobs
    referencing new table as changed
    for each statement execute function howdah.notify_plain_update();

-- The key of a live job decides which slot it holds, so it stays as it is. So does that of an ended job, which may be requeued.
create or replace function howdah.refuse_new_key() returns trigger
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = '22023',
        message = format('the key of job %s cannot be changed', old.id),
        hint = 'Cancel the job if it is live, and enqueue it with the other key.';
end;
$$;

create or replace trigger refuse_new_key
    before update of key on howdah.jobs_live
    for each row when (new.key is distinct from old.key)
    execute function howdah.refuse_new_key();

create or replace trigger refuse_new_key
    before update of key on howdah.jobs_finished
    for each row when (new.key is distinct from old.key)
    execute function howdah.refuse_new_key();
