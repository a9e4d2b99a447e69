-- expiry · until when a job must have started; null: it never expires
--
--   p_expires_at  the instant itself; 'infinity': never
--   p_expires     or how long after the job is due
--   p_run_at      when it is due; null: now
--
-- Raises 22023 where no attempt could ever begin. Locks nothing.

create or replace function howdah.expiry(p_expires_at timestamptz, p_expires interval, p_run_at timestamptz)
returns timestamptz
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_expires_at = 'infinity' then
        p_expires_at := null;
    end if;
    if p_expires_at is not null and p_expires is not null then
        raise exception using errcode = '22023', message = 'give p_expires_at or p_expires, not both';
    elsif p_expires_at <= p_run_at then
        raise exception using errcode = '22023',
            message = format('the job would expire at %s, before it is due at %s', p_expires_at, p_run_at),
            hint = 'Give a later p_expires_at, or p_expires: so long after the job is due.';
    elsif p_expires <= '0' then
        raise exception using errcode = '22023', message = format('p_expires must be longer than nothing, not %s', p_expires);
    end if;
    return coalesce(p_expires_at, greatest(p_run_at, howdah.clock()) + p_expires);
end;
$$;
