-- due_schedules · the schedules that a worker has to fire now, or whose next firing it has to compute
--
--   p_limit  how many at most
--   returns  what it takes to compute their times, and the time now
--
-- Locks nothing: fire_schedules checks that nothing has changed meanwhile.

create or replace function howdah.due_schedules(p_limit int default 100)
returns table (name text, version bigint, cron text, every interval, tz text, missed text, next_firing timestamptz,
               counts_from timestamptz, clock timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
begin atomic
    select s.name, s.version, s.cron, s.every, s.tz, s.missed, s.next_firing, s.counts_from, howdah.clock()
    from (select * from howdah.schedules as d
          where d.paused_at is null and d.orphaned_at is null
          order by d.next_firing nulls first limit p_limit) as s
    where s.next_firing is null or s.next_firing <= howdah.clock();
end;
