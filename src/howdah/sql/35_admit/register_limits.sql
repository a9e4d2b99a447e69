-- register_limits · a worker registers the rules in its code when it starts
--
-- The worker that starts last wins. A rule that was changed by hand stays as long as the code says the same as before. A rule that
-- an earlier start has registered, and that is not in the code any more, is removed.
--
--   p_types   a JSON array of all job types of the worker: {"name": …, "at_once": …, "ordered": …, "fair": …, "limit": …}; without a rule only the name
--   p_limits  a JSON array of the limits in its code, with the names of set_limit's parameters without `p_`
--   returns   what it has changed: for a log
--
-- Locks and wakes as set_limit and set_type_limit.

create or replace function howdah.register_limits(p_worker_id text, p_types jsonb, p_limits jsonb default '[]')
returns table (kind text, name text, rule jsonb)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if jsonb_typeof(p_types) is distinct from 'array' or jsonb_typeof(p_limits) is distinct from 'array' then
        raise exception using errcode = '22023', message = 'p_types and p_limits must be JSON arrays of objects';
    end if;
    for name, rule in
        select l ->> 'name', l from jsonb_array_elements(p_limits) as l
        where not exists (select from howdah.limits as k where k.name = l ->> 'name' and k.declared = l)
        order by 1
    loop
        perform howdah.set_limit(name, (rule ->> 'at_once')::int, (rule ->> 'rate')::int,
                                 coalesce((rule ->> 'per')::interval, '1 second'), (rule ->> 'burst')::int,
                                 coalesce((rule ->> 'per_key')::bool, false), left(p_worker_id, 200), rule);
        kind := 'limit';
        return next;
    end loop;
    for name, rule in
        select t ->> 'name', t from jsonb_array_elements(p_types) as t
        where not exists (select from howdah.type_limits as k where k.job_type = t ->> 'name' and k.declared = t)
        order by 1
    loop
        kind := 'type';
        if rule ? 'at_once' or rule ? 'limit' or rule ? 'fair' then
            perform howdah.set_type_limit(name, (rule ->> 'at_once')::int, coalesce((rule ->> 'ordered')::bool, false),
                                          rule ->> 'limit', left(p_worker_id, 200), rule,
                                          coalesce((rule ->> 'fair')::bool, false));
            return next;
        elsif exists (select from howdah.type_limits as k where k.job_type = name and k.declared is not null) then
            perform howdah.clear_type_limit(name);
            rule := null;
            return next;
        end if;
    end loop;
    -- this worker has more places
    perform howdah.fit_fair_widths(array(select t ->> 'name' from jsonb_array_elements(p_types) as t));
end;
$$;
