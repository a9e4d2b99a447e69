-- requeue · failed, cancelled → pending
--
-- Puts finished jobs back into the line because a person asked for it, with p_attempts more
-- attempts than they had. Attempts are never reset, so an old lease never matches the
-- requeued job. Steps that have ended are kept, and not run again. An expiry that has passed is removed; one to come is kept. A job whose unique key another job
-- holds is not moved. A job with a concurrency key is the last in the order of that key. If an id was used for several jobs, the last of them
-- is meant: see 27_checks/refuse_used_ids.sql.
--
--   returns  the ids this call moved; a missing id is live, completed, pruned or never existed
--
-- Locks the rows it moves, and their unique keys. Wakes idle workers that know the types.

create or replace function howdah.requeue(p_ids uuid[], p_attempts int default 1) returns setof uuid
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
    v_moved  uuid[];
    v_types  text[];
    v_limited uuid[];
begin
    if p_attempts is null or p_attempts < 1 then
        raise exception using errcode = '22023', message = 'p_attempts must be at least 1';
    end if;
    p_ids := howdah.take_requeued_keys(p_ids);
    loop
        begin
            -- the delete trigger of jobs_finished keeps the counts
            with last as (
                select distinct on (j.id) j.id, j.tableoid, j.ctid, j.status from howdah.jobs_finished as j
                where j.id = any (p_ids)
                  and not exists (select from howdah.jobs_live as l where l.id = any (array[j.id]))
                order by j.id, j.finished_on desc, j.completed_at desc nulls last
            ), revived as (
                delete from howdah.jobs_finished as j using last
                where j.id = last.id and j.tableoid = last.tableoid and j.ctid = last.ctid
                  and j.status in ('failed', 'cancelled')
                returning j.*
            ), moved as (
                insert into howdah.jobs_live (
                    id, job_type, priority, data, events_count, created_at, attempts, max_attempts, last_error,
                    errors, trace, unique_key, unique_until, expires_at, key)
                select r.id, r.job_type, r.priority, r.data, r.events_count, r.created_at, r.attempts,
                       least(r.attempts::bigint + p_attempts, 2147483647), r.last_error, r.errors, r.trace, r.unique_key, r.unique_until,
                       case when r.expires_at > howdah.clock() then r.expires_at end, r.key
                from revived as r
                returning jobs_live.id, jobs_live.job_type, jobs_live.key
            )
            select array_agg(m.id), array_agg(distinct m.job_type),
                   array_agg(m.id) filter (where m.key is not null or m.job_type in (select r.job_type from howdah.type_limits as r))
            into v_moved, v_types, v_limited from moved as m;
            exit;
        exception when unique_violation then  -- somebody enqueued one of these ids at this moment: try again
            if current_setting('transaction_isolation') <> 'read committed' then
                raise;
            end if;
        end;
    end loop;
    if v_limited is not null then
        perform howdah.limit_new(v_limited);
    end if;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select unnest(v_moved);
end;
$$;
