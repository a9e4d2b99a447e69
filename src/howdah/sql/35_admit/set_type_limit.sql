-- set_type_limit · set the rule of a job type, from now on and for the jobs that exist
--
--   p_at_once  how many jobs of one key may be admitted at once; null: any number
--   p_ordered  true: one after the other, in the order of enqueueing; then p_at_once is 1
--   p_limit    the name of a limit that each job needs too; null: none
--   p_fair     true: keys take turns; p_at_once is null, because the database keeps how many jobs of a key stand in line
--   p_by       for people to read; the user of the session where it is null
--
-- Reads jobs_live once, about 0.2 s per million jobs, and changes the jobs whose limit is another now. Locks these (skip locked), and
-- one row of type_limits. Wakes as notify_admission.

create or replace function howdah.set_type_limit(
    p_job_type  text,
    p_at_once   int,
    p_ordered   bool   default false,
    p_limit     text   default null,
    p_by        text   default null,
    p_declared  jsonb  default null,
    p_fair      bool   default false
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    if p_fair and p_ordered then
        raise exception using errcode = '22023', message = 'ordered and fair cannot both be true',
            hint = 'Ordered keys have one slot each, so they take turns already.';
    end if;
    if p_fair and p_at_once is not null then
        raise exception using errcode = '22023', message = format('at_once must be null where fair is true, not %s', p_at_once),
            hint = 'Without a limit per key, p_fair => true lets keys take turns. With one, at_once does.';
    end if;
    if p_ordered and p_at_once is distinct from 1 then
        raise exception using errcode = '22023',
            message = format('at_once must be 1 where ordered is true, not %s', coalesce(p_at_once::text, 'null')),
            hint = 'Jobs that run one after the other have one slot per key.';
    end if;
    if p_at_once < 1 then
        raise exception using errcode = '22023', message = format('at_once must be at least 1, not %s', p_at_once),
            hint = 'Pause the type to let no job run.';
    end if;
    if p_limit is not null and not exists (select from howdah.limits as l where l.name = p_limit) then
        raise exception using errcode = '22023', message = format('there is no limit named %s', p_limit),
            hint = coalesce('There are: ' || (select string_agg(l.name, ', ' order by l.name) from howdah.limits as l) || '.',
                            'There is no limit at all. Make it with howdah.set_limit.');
    end if;
    insert into howdah.type_limits as t (job_type, at_once, ordered, fair, limit_name, counted, declared, changed_at, changed_by)
    values (p_job_type, case when p_fair then howdah.places(p_job_type) else p_at_once end, coalesce(p_ordered, false),
            coalesce(p_fair, false), p_limit, false, p_declared, howdah.clock(), coalesce(p_by, session_user))
    on conflict (job_type) do update
    set at_once = excluded.at_once, ordered = excluded.ordered, fair = excluded.fair, limit_name = excluded.limit_name,
        -- what was ordered may have runs, whose jobs all hold a slot: see claim_run
        counted = t.counted or t.ordered or coalesce(excluded.at_once < coalesce(t.at_once, 2147483647), false),
        declared = coalesce(excluded.declared, t.declared),
        changed_at = excluded.changed_at, changed_by = excluded.changed_by;
    perform howdah.fit_fair_widths(array[p_job_type]);
    perform howdah.apply_type_limit(p_job_type);
end;
$$;

-- clear_type_limit · remove the rule of a job type: a key has one slot, and there is no named limit
--
-- What was ordered keeps a rule of one slot, which counts: the jobs of a run all hold a slot, see claim_run.
--
--   returns  whether there was one

create or replace function howdah.clear_type_limit(p_job_type text) returns bool
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update howdah.type_limits as t
    set ordered = false, limit_name = null, counted = true, declared = null, changed_at = howdah.clock(), changed_by = session_user
    where t.job_type = p_job_type and t.ordered;
    if not found then
        delete from howdah.type_limits as t where t.job_type = p_job_type;
    end if;
    if found then
        perform howdah.apply_type_limit(p_job_type);
        return true;
    end if;
    return false;
end;
$$;
