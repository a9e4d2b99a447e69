-- take_inserted_key · take the unique key of a job that a plain statement has added or revived
--
-- Raises HW007 where another job holds the key: a plain statement cannot get the other job's id. Locks as take_unique_key does.

create or replace function howdah.take_inserted_key(p_job_type text, p_key text, p_id uuid, p_until text) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_holder uuid;
begin
    if p_until = 'time' then
        raise exception using errcode = '22023', message = 'unique_until must be started or ended, not time',
            hint = 'To keep a key for a time, call howdah.enqueue with p_unique_for.';
    end if;
    v_holder := howdah.take_unique_key(p_job_type, p_key, p_id);
    if v_holder is not null then
        perform howdah.refuse_unique_key(p_job_type, p_key, v_holder);
    end if;
end;
$$;
