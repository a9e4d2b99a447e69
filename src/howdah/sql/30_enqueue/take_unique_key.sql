-- take_unique_key · take a unique key of a job type for a job that is about to be added
--
--   p_job_type, p_key  the key
--   p_id               the job that takes it
--   p_holds_until      until when it is taken; null: while the job holds it
--   p_lock             lock the job that holds it, if it is pending: it is about to be changed
--   returns            null: the job has the key. Else the id of the job that holds it
--
-- A job holds its key while it is live; one with unique_until = 'started', while no attempt has begun. One that expired before
-- it began holds nothing.
--
-- Locks the row of the key until the transaction ends: a second enqueue of the same key waits, one of another key never
-- does. In a transaction block, or with p_lock, it also locks the job that holds the key, if it is pending (for key share): that
-- job cannot begin before the transaction ends, so it sees what the transaction writes. A single statement has written nothing
-- else, and locks no job. It never waits for a running job. Wakes nobody.

create or replace function howdah.take_unique_key(
    p_job_type text, p_key text, p_id uuid, p_holds_until timestamptz default null, p_lock bool default false)
returns uuid
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_key howdah.unique_keys;
begin
    loop
        insert into howdah.unique_keys (unique_key, job_type, job_id, holds_until)
        values (p_key, p_job_type, p_id, p_holds_until)
        on conflict (unique_key, job_type) do nothing;
        if found then
            return null;
        end if;
        select * into v_key from howdah.unique_keys as k
        where k.unique_key = p_key and k.job_type = p_job_type
        for update;
        continue when not found;  -- deleted at this moment
        -- a statement of its own: it sees what was committed while we waited for the lock. A transaction block has begun
        -- before its statement.
        if v_key.job_id <> p_id and howdah.holds_unique_key(v_key, p_lock or now() <> statement_timestamp()) then
            return v_key.job_id;
        end if;
        update howdah.unique_keys as k set job_id = p_id, holds_until = p_holds_until
        where k.unique_key = p_key and k.job_type = p_job_type;
        return null;
    end loop;
end;
$$;

-- holds_unique_key · whether the job that a row of unique_keys names still holds the key
--
-- The row must be locked. With p_lock it locks the job if it is pending, and waits for a claim that takes it at this moment.

create or replace function howdah.holds_unique_key(p_key howdah.unique_keys, p_lock bool) returns bool
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_now timestamptz := howdah.clock();
begin
    if p_key.holds_until is not null then
        return p_key.holds_until > v_now;
    end if;
    while p_lock loop
        begin
            perform from howdah.jobs_live as j
            where j.id = p_key.job_id and j.unique_key = p_key.unique_key and j.job_type = p_key.job_type
              and j.worker_id is null and (j.attempts = 0 or j.unique_until is distinct from 'started')
              and (j.expires_at is null or j.expires_at > v_now)
            for key share;
            if found then
                return true;
            end if;
            exit;
        exception when serialization_failure then  -- a plain UPDATE moved it to jobs_finished
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
        end;
    end loop;
    return exists (
        select from howdah.jobs_live as j
        where j.id = p_key.job_id and j.unique_key = p_key.unique_key and j.job_type = p_key.job_type
          and case when j.worker_id is null
                   then (j.attempts = 0 or j.unique_until is distinct from 'started')
                        and (j.expires_at is null or j.expires_at > v_now)
                   else j.unique_until is distinct from 'started' end);
end;
$$;

-- refuse_unique_key · raise HW007: another job has the key

create or replace function howdah.refuse_unique_key(p_job_type text, p_key text, p_holder uuid) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'HW007',
        message = format('the unique key %s of the type %s belongs to job %s', to_json(p_key), p_job_type, p_holder),
        detail = p_holder,
        hint = 'Wait until that job lets the key go, or enqueue with p_on_conflict to get, replace or move that job.';
end;
$$;
