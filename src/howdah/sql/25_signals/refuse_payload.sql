-- refuse_payload · the one refusal of a payload that is too large, as SQLSTATE HW001

create or replace function howdah.refuse_payload(p_job_type text, p_bytes int, p_limit int) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    raise exception using errcode = 'HW001',
        message = format('the payload of a %L job has %s bytes; the limit is %s', p_job_type, p_bytes, p_limit),
        hint = 'Store the data elsewhere and enqueue a reference to it, or raise the option max_payload_bytes.';
end;
$$;
