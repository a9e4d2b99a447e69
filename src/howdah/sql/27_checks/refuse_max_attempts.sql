-- refuse_max_attempts · the one refusal of more attempts than the option max_attempts_limit allows
--
-- What comes in past it, by COPY or before the limit was lowered, ends at the limit all the same: see
-- 60_settle/retry.sql and 70_upkeep/recover_stale_jobs.sql.

create or replace function howdah.refuse_max_attempts(p_max_attempts int) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_limit int := howdah.option('max_attempts_limit');
begin
    if p_max_attempts > v_limit then
        raise exception using errcode = '22023',
            message = format('max_attempts is %s; the limit is %s', p_max_attempts, v_limit),
            hint = 'Ask for fewer attempts, or raise the option max_attempts_limit.';
    end if;
end;
$$;
