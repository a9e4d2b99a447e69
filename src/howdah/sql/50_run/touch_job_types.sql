-- touch_job_types · a worker reports, now and then, that it still knows its job types
--
-- Changes only `last_seen_at`, and only where no worker has done so in the last 30 seconds: a hundred workers
-- write as much as one.
--
--   returns  those of p_names that are not registered: register them
--
-- Locks the rows it changes (skip locked). Wakes nobody.

create or replace function howdah.touch_job_types(p_names text[]) returns setof text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    update howdah.job_types as known set last_seen_at = howdah.clock()
    where known.name = any (array(
        select k.name from howdah.job_types as k
        where k.name = any (p_names) and k.last_seen_at < howdah.clock() - interval '30 seconds'
        order by k.name for update skip locked));
    return query select n from unnest(p_names) as n
    where not exists (select from howdah.job_types as k where k.name = n);
end;
$$;
