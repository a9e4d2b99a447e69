-- limited_counts · how many jobs of each type wait for a slot of their key, and for their limit
--
-- Reads at most p_cap entries of jobs_by_key for a type, and of jobs_by_limit for a limit, however many jobs wait.
--
--   returns  waits_for: key or limit; more: there are more than these. A type may come several times
--
-- Locks nothing. Under a long transaction it also reads the dead entries of these indexes, so give the statement a timeout.

create or replace function howdah.limited_counts(p_cap int default 10000)
returns table (job_type text, waits_for text, jobs bigint, more bool)
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_limit record;
begin
    return query select c.job_type, 'key', c.jobs::bigint, c.more from howdah.slot_wait_counts(p_cap) as c where c.jobs > 0 or c.more;
    for v_limit in select l.name, l.per_key from howdah.limits as l order by l.name limit 1000 loop
        return query
            select c.type, 'limit', count(*) filter (where c.admission = 'limit'), c.full_
            from (select r.*, count(*) over () >= p_cap as full_ from (
                select j.job_type::text as type, j.admission from howdah.jobs_live as j
                where not v_limit.per_key and j.limited_by = v_limit.name and j.limited_by is not null
                  and j.admission = 'limit' and j.admission is not null
                order by j.limited_by, j.admission, ~j.priority, j.arrival limit p_cap) as r
            union all
            select r.*, count(*) over () >= p_cap from (
                select j.job_type::text, j.admission from howdah.jobs_live as j
                where v_limit.per_key and j.limited_by >= v_limit.name || ':' and j.limited_by < v_limit.name || ';'
                  and j.limited_by is not null and j.admission is not null
                order by j.limited_by, j.admission, ~j.priority, j.arrival limit p_cap) as r) as c
            group by c.type, c.full_
            having count(*) filter (where c.admission = 'limit') > 0 or c.full_;
    end loop;
end;
$$;
