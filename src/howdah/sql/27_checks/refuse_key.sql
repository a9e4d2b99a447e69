-- refuse_key · raise 22023 for a concurrency key that is too long, empty or has control characters
--
-- A function and not a domain: a domain would be checked for every job without a key.

create or replace function howdah.refuse_key(p_key text) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if length(p_key) not between 1 and 200 or p_key ~ '[[:cntrl:]]' then
        raise exception using errcode = '22023',
            message = format('key must have 1 to 200 characters, none of them a control character; this one has %s: %s',
                             length(p_key), quote_literal(left(p_key, 50))),
            hint = 'Use a short name of what must not run at the same time, such as tenant-7, or a hash of it.';
    end if;
end;
$$;
