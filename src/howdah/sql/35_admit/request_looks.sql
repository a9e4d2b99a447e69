-- request_look · let `admit` look at a key and a limit, after this transaction has committed
--
--   p_job_type, p_key   a key; null: none
--   p_limited_by        a limit; null: none
--
-- Locks nothing. Wakes idle workers as notify_admission does.

create or replace function howdah.request_look(p_job_type text, p_key text, p_limited_by text) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_key is not null then
        insert into howdah.admission_requests (kind, job_type, name) values ('key', p_job_type, p_key);
    end if;
    if p_limited_by is not null then
        insert into howdah.admission_requests (kind, name) values ('limit', p_limited_by);
    end if;
    perform howdah.notify_admission();
end;
$$;

-- notify_admission · notify workers that `admit` has something to look at
--
-- Sent on the channel of scheduled jobs: see promote_due. Where no worker is idle, busy ones look every few milliseconds as
-- long as they find something, and there is no NOTIFY. Locks nothing that outlives the statement. Wakes every idle worker, or
-- busy workers that have not looked for a while.

create or replace function howdah.notify_admission() returns void
language sql volatile security definer
set search_path = pg_catalog, pg_temp
begin atomic
    select case when howdah.has_idle_worker()
                     or coalesce(pg_sequence_last_value('howdah.next_look_by'), 0) < extract(epoch from clock_timestamp()) * 1000
                then pg_notify('howdah_due', '') end;
end;
