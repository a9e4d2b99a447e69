-- delete · completed, failed, cancelled → gone
--
-- Deletes finished jobs, their events, steps and signals before prune does. A job that has not ended is
-- not deleted: cancel it first.
--
--   returns  the ids this call deleted; a missing id has not ended, or never existed
--
-- Locks the rows it deletes. Wakes nobody.

create or replace function howdah.delete(p_ids uuid[]) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_gone   uuid[];
    v_alone  uuid[];
begin
    -- the delete trigger of jobs_finished keeps the counts
    with gone as (
        delete from howdah.jobs_finished as j where j.id = any (p_ids) returning j.id
    )
    select array_agg(g.id) into v_gone from gone as g;
    -- a live job with the same id keeps what it has
    v_alone := array(select g from unnest(v_gone) as g where not exists (select from howdah.jobs_live as l where l.id = any (array[g])));
    delete from howdah.job_events as e where e.job_id = any (v_alone);
    delete from howdah.job_steps as s where s.job_id = any (v_alone);
    delete from howdah.job_signals as g where g.job_id = any (v_alone);
    return query select unnest(v_gone);
end;
$$;
