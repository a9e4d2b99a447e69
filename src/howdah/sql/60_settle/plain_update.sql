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
begin
    if new.status = 'pending' then
        new.worker_id := null;
        new.held_by := null;
        new.claimed_at := null;
        new.ready_at := case when new.run_at > howdah.clock() then null else coalesce(new.ready_at, now()) end;
        return new;
    elsif new.status in ('claimed', 'running') then
        perform howdah.refuse_holder_mismatch(new.id, new.status);
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
                   or (new.ready_at is null and new.run_at is null)
                   or new.run_at > new.ready_at)))  -- after it joined the line: perhaps not due
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
-- again wake idle workers, and followers of watched jobs are notified. The verbs write to jobs_live and do not fire
-- this trigger.
create or replace function howdah.notify_plain_update() returns trigger
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_types text[] := array(
        select distinct job_type from changed
        where status = 'pending' and worker_id is null and ready_at is not null
    );
begin
    update howdah.jobs_live as j set held_by = j.worker_id
    where j.id = any (array(
        select id from changed
        where status in ('claimed', 'running') and held_by is distinct from worker_id));
    if v_types <> '{}' then
        perform howdah.wake(v_types);
    end if;
    perform howdah.notify_due(min(run_at)) from changed
    where status = 'pending' and worker_id is null and ready_at is null and run_at is not null;
    perform howdah.notify_followers(array(select id from changed where watched));
    return null;
end;
$$;

create or replace trigger notify_plain_update
    after update on howdah.jobs
    referencing new table as changed
    for each statement execute function howdah.notify_plain_update();
