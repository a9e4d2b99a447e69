-- payload_fits · whether a payload is within the option max_payload_bytes; raises HW001 if not
--
-- Called by the domain json_object, so it checks every way into jobs: a function, an INSERT, a COPY, an UPDATE.
-- It measures the text that clients get. The size in the table says little: one number may have
-- 100,000 digits in a few bytes, and nobody can read a payload that is larger than 1 GB as text.

create or replace function howdah.payload_fits(p_data jsonb) returns bool
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_bytes int := octet_length(p_data::text);
    v_limit int := (select value from howdah.options where name = 'max_payload_bytes');
begin
    if v_bytes > v_limit then
        raise exception using errcode = 'HW001',
            message = format('the payload has %s bytes; the limit is %s', v_bytes, v_limit),
            hint = 'Store the data elsewhere and enqueue a reference to it, or raise the option max_payload_bytes.';
    end if;
    return true;
end;
$$;
