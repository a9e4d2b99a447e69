-- request_all_looks · let `admit` look at every key and limit for which jobs wait
--
-- A net: for what no trigger sees, such as rows that the owner of the tables deletes from jobs_live. Upkeep calls it every ten
-- minutes. `admit` walks the keys in steps, in the order of the index.
--
-- Locks nothing. Wakes nobody.

create or replace function howdah.request_all_looks() returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_indexscan = on
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
    insert into howdah.admission_requests (kind, job_type, name)
    with recursive types (job_type) as (
        (select j.job_type::text from howdah.jobs_live as j
         where j.key is not null and j.admission is not null order by j.job_type limit 1)
        union all
        select n.job_type from types as t cross join lateral (
            select j.job_type::text from howdah.jobs_live as j
            where j.key is not null and j.admission is not null and j.job_type > t.job_type
            order by j.job_type limit 1) as n
    )
    select 'type', t.job_type, '' from types as t
    union all
    select 'limit', null, l.name from howdah.limits as l
    union all
    select 'limit', null, s.limited_by from howdah.rate_states as s;
end;
$$;
