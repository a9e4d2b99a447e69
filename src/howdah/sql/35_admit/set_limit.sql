-- set_limit · make a named limit, or change it: for all jobs whose type names it, from now on
--
--   p_at_once        how many of these jobs may be admitted at once; null: any number
--   p_rate, p_per    how many may start per time; null: any number
--   p_burst          how many may start at once after a pause; null: 1, and what the rate allows in 50 ms
--   p_per_key        true: each concurrency key has the whole limit for itself
--   p_by             for people to read; the user of the session where it is null
--
-- Locks one row of limits; else as apply_type_limit where p_per_key changes. Wakes as notify_admission.

create or replace function howdah.set_limit(
    p_name      text,
    p_at_once   int       default null,
    p_rate      int       default null,
    p_per       interval  default '1 second',
    p_burst     int       default null,
    p_per_key   bool      default false,
    p_by        text      default null,
    p_declared  jsonb     default null
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_per_key  bool := (select l.per_key from howdah.limits as l where l.name = p_name);
begin
    if p_name is null or length(p_name) not between 1 and 100 or p_name ~ '[[:cntrl:]:]' then
        raise exception using errcode = '22023',
            message = format('the name of a limit must have 1 to 100 characters, no colon and no control character, not %s',
                             coalesce(quote_literal(left(p_name, 110)), 'null'));
    elsif p_at_once is null and p_rate is null then
        raise exception using errcode = '22023', message = format('the limit %s needs at_once or a rate', p_name);
    elsif p_at_once < 1 or p_rate < 1 or p_burst < 1 then
        raise exception using errcode = '22023',
            message = format('at_once, rate and burst must be at least 1, not %s, %s and %s', p_at_once, p_rate, p_burst),
            hint = 'Pause the job types to let no job run.';
    elsif p_rate is not null and (p_per is null or p_per < '1 millisecond' or p_per > '366 days') then
        raise exception using errcode = '22023',
            message = format('per must be between 1 millisecond and 366 days, not %s', coalesce(p_per::text, 'null'));
    elsif p_per / p_rate < '1 microsecond' then
        raise exception using errcode = '22023', message = format('a rate of %s per %s is more than one per microsecond', p_rate, p_per);
    end if;
    insert into howdah.limits as l (name, at_once, rate, per, burst, per_key, declared, changed_at, changed_by)
    values (p_name, p_at_once, p_rate, case when p_rate is not null then p_per end,
            case when p_rate is not null
                 then coalesce(p_burst, least(1 + floor(p_rate * 0.05 / extract(epoch from p_per)), 2147483647)::int) end,
            coalesce(p_per_key, false), p_declared, howdah.clock(), coalesce(p_by, session_user))
    on conflict (name) do update
    set at_once = excluded.at_once, rate = excluded.rate, per = excluded.per, burst = excluded.burst,
        per_key = excluded.per_key, declared = coalesce(excluded.declared, l.declared),
        counted = l.counted or coalesce(excluded.at_once < coalesce(l.at_once, 2147483647), false),
        changed_at = excluded.changed_at, changed_by = excluded.changed_by;
    if v_per_key is distinct from coalesce(p_per_key, false) then
        perform howdah.apply_type_limit(t.job_type) from howdah.type_limits as t where t.limit_name = p_name;
    end if;
    perform howdah.request_look(null, null, p_name);
end;
$$;

-- remove_limit · remove a named limit, also from the rules of the types that name it
--
--   returns  whether there was one

create or replace function howdah.remove_limit(p_name text) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_types text[];
begin
    delete from howdah.limits where name = p_name;
    if not found then
        return false;
    end if;
    with changed as (
        update howdah.type_limits as t set limit_name = null where t.limit_name = p_name returning t.job_type
    )
    select array_agg(c.job_type) into v_types from changed as c;
    perform howdah.apply_type_limit(t) from unnest(v_types) as t;
    perform howdah.request_look(null, null, p_name);
    return true;
end;
$$;
