-- jobs_ahead · how many jobs of these types come before a position in the line; counts p_cap of each type at most
--
--   p_priority, p_ready_at, p_id  the position
--   returns                       higher: with a higher priority; older: with the same priority, but earlier
--
-- Reads the index jobs_ready. Locks nothing.

create or replace function howdah.jobs_ahead(
    p_job_types text[], p_priority int, p_ready_at timestamptz, p_id uuid, p_cap int default 10000)
returns table (job_type text, higher int, older int)
language sql stable
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
begin atomic
    select t, before.higher::int, before.older::int
    from unnest(p_job_types) as t
    cross join lateral (
        select count(*) filter (where b.priority > p_priority) as higher,
               count(*) filter (where b.priority = p_priority) as older
        from (select j.priority from howdah.jobs_live as j
              where j.job_type = t and j.held_by is null and j.worker_id is null and j.ready_at is not null
                and (~j.priority, j.ready_at, j.id) < (~p_priority, p_ready_at, p_id)
              order by ~j.priority, j.ready_at, j.id
              limit p_cap) as b
    ) as before
    where not exists (select from howdah.paused_types as p where p.job_type = t);
end;
