-- forget_steps · delete the steps and signals of jobs that are gone
--
-- Called by `prune`, which drops whole days of jobs without reading them.
--
--   returns  of how many jobs steps or signals were deleted
--
-- Reads the ids in job_steps and job_signals, and searches each in jobs. Locks the rows it deletes. Wakes nobody.

create or replace function howdah.forget_steps() returns bigint
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql. It must never read all jobs
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_gone  uuid[];
begin
    v_gone := array(
        select known.job_id
        from (select s.job_id from howdah.job_steps as s union select g.job_id from howdah.job_signals as g) as known
        where (select true from howdah.jobs_live as j where j.id = known.job_id limit 1) is null
          and (select true from howdah.jobs_finished as j where j.id = known.job_id limit 1) is null);
    delete from howdah.job_steps as s where s.job_id = any (v_gone);
    delete from howdah.job_signals as g where g.job_id = any (v_gone);
    return cardinality(v_gone);
end;
$$;
