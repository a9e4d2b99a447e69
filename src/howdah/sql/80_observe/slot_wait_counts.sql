-- slot_wait_counts · how many jobs of each type wait for a slot of their concurrency key
--
-- Reads the index jobs_by_key from type to type, and at most p_cap jobs of each: those of the first keys, in the order of the keys.
--
--   p_cap      how many jobs of a type are read at most
--   p_types    how many types are read at most
--   jobs       how many of these wait for a slot
--   more       there are more jobs than were read
--
-- Locks nothing. Under a long transaction it also reads dead entries, so give the statement a timeout.

create or replace function howdah.slot_wait_counts(p_cap int default 10000, p_types int default 1000)
returns table (job_type text, jobs int, more bool)
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
    v_read int;
begin
    job_type := '';
    for n in 1 .. p_types loop
        job_type := (select j.job_type from howdah.jobs_live as j
                     where j.key is not null and j.admission is not null and j.job_type > slot_wait_counts.job_type
                     order by j.job_type, j.key, j.admission, ~j.priority, j.arrival limit 1);
        exit when job_type is null;
        select count(*), count(*) filter (where k.admission = 'slot' and k.worker_id is null) into v_read, jobs from (
            select j.admission, j.worker_id from howdah.jobs_live as j
            where j.job_type = slot_wait_counts.job_type and j.key is not null and j.admission is not null
            order by j.job_type, j.key, j.admission, ~j.priority, j.arrival limit p_cap + 1) as k;
        more := v_read > p_cap;
        jobs := least(jobs, p_cap);
        return next;
    end loop;
end;
$$;
