-- limit_counts · how many jobs hold slots of each named limit, and how many wait for it
--
-- Reads the index jobs_by_limit, from key to key for a limit per key.
--
--   p_cap     how many jobs of a limit are counted at most, and a tenth as many keys, 1,000 at most
--   p_limits  how many limits are read at most, by name
--   p_name    one limit alone; null: all
--   keys      of a limit per key: how many keys have jobs; more_keys: there are more, and their jobs are not counted
--   admitted  how many jobs hold a slot; more_admitted: there are more
--   at_work   how many of these a worker holds
--   in_line_since  since when the first of the others is in line; null: there are none
--   waiting   how many jobs wait; more_waiting: there are more
--   waits_since    since when the first of those that are next waits; null: only jobs of paused types wait
--
-- Locks nothing. Under a long transaction it also reads dead entries, so give the statement a timeout.

create or replace function howdah.limit_counts(p_cap int default 10000, p_limits int default 1000, p_name text default null)
returns table (name text, keys int, more_keys bool, admitted int, more_admitted bool, at_work int, in_line_since timestamptz,
               waiting int, more_waiting bool, waits_since timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set jit = off
as $$
declare
    v_limited_by  text;
    v_found       record;
begin
    for name in
        select l.name from howdah.limits as l where p_name is null or l.name = p_name order by l.name limit p_limits
    loop
        keys := 0;
        admitted := 0;
        at_work := 0;
        waiting := 0;
        more_keys := false;
        more_admitted := false;
        more_waiting := false;
        in_line_since := null;
        waits_since := null;
        v_limited_by := name;  -- then key after key
        while v_limited_by is not null loop
            exit when more_keys;
            select count(*) as jobs, count(h.worker_id) as at_work, min(h.ready_at) filter (where h.worker_id is null) as since
            into v_found from (
                select j.worker_id, j.ready_at from howdah.jobs_live as j
                where j.limited_by = v_limited_by and j.limited_by is not null
                  and j.admission = 'admitted' and j.admission is not null
                limit p_cap - admitted + 1) as h;
            more_admitted := more_admitted or v_found.jobs > p_cap - admitted;
            admitted := least(p_cap, admitted + v_found.jobs);
            at_work := at_work + v_found.at_work;
            in_line_since := least(in_line_since, v_found.since);
            select count(*) as jobs into v_found from (
                select from howdah.jobs_live as j
                where j.limited_by = v_limited_by and j.limited_by is not null
                  and j.admission = 'limit' and j.admission is not null
                limit p_cap - waiting + 1) as w;
            more_waiting := more_waiting or v_found.jobs > p_cap - waiting;
            waiting := least(p_cap, waiting + v_found.jobs);
            if v_found.jobs > 0 then
                waits_since := least(waits_since, (
                    select greatest(f.created_at, f.run_at) from (
                        select j.job_type, j.created_at, j.run_at from howdah.jobs_live as j
                        where j.limited_by = v_limited_by and j.limited_by is not null
                          and j.admission = 'limit' and j.admission is not null
                        order by ~j.priority, j.arrival limit 1000) as f
                    where (select true from howdah.paused_types as p where p.job_type = f.job_type) is null
                    limit 1));
            end if;
            v_limited_by := (
                select j.limited_by from howdah.jobs_live as j
                where j.limited_by > v_limited_by and j.limited_by >= name || ':' and j.limited_by < name || ';'
                  and j.admission is not null
                order by j.limited_by limit 1);
            more_keys := v_limited_by is not null and keys >= least(p_cap / 10, 1000);
            keys := keys + (v_limited_by is not null and not more_keys)::int;
        end loop;
        more_admitted := more_admitted or more_keys;
        more_waiting := more_waiting or more_keys;
        return next;
    end loop;
end;
$$;
