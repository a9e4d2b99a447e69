-- watch · follow these jobs: mark them, and return them as they are now
--
-- Marks live jobs as watched, so that their changes are sent on the channel howdah_news, and
-- returns the jobs as they are now, also those that have ended.
--
-- Locks live rows in id order; changes no indexed column. Wakes nobody. A plain UPDATE that
-- ends one of these jobs while we wait for its row raises 40001, one that locks several in another
-- order 40P01: we try again; after a deadlock as in cancel. We also try again when a job became live again between marking and reading: it
-- would be returned without the mark.

create or replace function howdah.watch(p_ids uuid[]) returns setof howdah.jobs
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
    v_left  uuid[] := p_ids;
    v_again uuid[];
    v_job   howdah.jobs;
    v_pause float := 0.01;  -- seconds
begin
    while cardinality(v_left) > 0 loop
        begin
            with wanted as (
                select w.id from unnest(v_left) as w (id) order by w.id
            )
            update howdah.jobs_live as j set watched = true
            from wanted as w where j.id = any (array[w.id]) and not j.watched;
        exception when serialization_failure or deadlock_detected then
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
            if sqlstate = '40P01' then
                perform pg_sleep(v_pause);
                v_pause := v_pause * 2;
            end if;
            continue;
        end;
        v_again := '{}';
        for v_job in select * from howdah.jobs_by_id(v_left) loop
            if v_job.watched or v_job.status in ('completed', 'failed', 'cancelled') then
                return next v_job;
            else
                v_again := v_again || v_job.id;
            end if;
        end loop;
        v_left := v_again;
    end loop;
end;
$$;
