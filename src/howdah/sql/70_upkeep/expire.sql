-- expire · pending → cancelled
--
-- Cancels jobs that have not started by their expires_at, the first to expire first. Workers do this about once a second.
-- Claims leave such jobs out in any case.
--
--   p_limit  how many jobs at most
--   returns  the ids this call moved
--
-- Locks the rows it moves (for update skip locked). Wakes those who follow these jobs.

create or replace function howdah.expire(p_limit int default 1000) returns setof uuid
language plpgsql volatile security definer
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
    v_ids     uuid[];
    v_errors  text[];
begin
    with late as materialized (
        select j.id, j.expires_at, j.attempts, j.last_error from howdah.jobs_live as j
        where j.expires_at is not null and j.held_by is null and j.worker_id is null
          and j.expires_at <= howdah.clock()
        order by j.expires_at
        limit p_limit
        for update skip locked
    )
    select array_agg(l.id),
           array_agg(left(format('expired: %s not started by %s%s',
                                 case when l.attempts > 0 then 'attempt ' || l.attempts::bigint + 1 || ' was' else 'it was' end,
                                 howdah.in_utc(l.expires_at), '; the last error: ' || l.last_error), 10000))
    into v_ids, v_errors from late as l;
    if v_ids is not null then
        return query select howdah.finish('cancelled', null, v_ids, null, v_errors, p_fenced => false);
    end if;
end;
$$;
