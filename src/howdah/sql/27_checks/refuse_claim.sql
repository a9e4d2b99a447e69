-- refuse_claim · raise 22023 for a claim whose arguments are wrong

create or replace function howdah.refuse_claim(p_worker_id text, p_batch_size int) returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_worker_id is null or length(p_worker_id) not between 1 and 200 then
        raise exception using errcode = '22023', message = 'p_worker_id must have 1 to 200 characters';
    end if;
    raise exception using errcode = '22023',
        message = format('p_batch_size must be between 1 and 10000, not %s', coalesce(p_batch_size::text, 'null'));
end;
$$;
