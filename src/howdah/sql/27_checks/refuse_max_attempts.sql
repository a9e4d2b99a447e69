-- refuse_max_attempts · raise 22023 for more attempts than the option max_attempts_limit allows
--
-- A job that was not checked, after a COPY or before the limit was lowered, still ends at the limit: see
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
