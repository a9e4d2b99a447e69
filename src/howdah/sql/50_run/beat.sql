-- beat · a worker reports that it is alive, and learns which jobs it has lost
--
-- One row per worker, not one per job. The first beat registers the worker. A worker
-- that was given up and beats again is alive again, without the jobs that it lost.
--
--   p_ids, p_attempts  the attempts that its handlers run
--   p_silent_after     how long it may be silent before its jobs are recovered
--   p_info             host, pid, version, slots … for people to read; null: as before
--   returns            those of p_ids that it no longer holds: cancelled, recovered, or gone
--
-- Locks its own row of howdah.workers. Wakes nobody.

create or replace function howdah.beat(
    p_worker_id     text,
    p_ids           uuid[]    default '{}',
    p_attempts      int[]     default '{}',
    p_silent_after  interval  default '15 seconds',
    p_info          jsonb     default null
) returns setof uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
    if p_silent_after not between '1 microsecond' and '1 year' then
        raise exception using errcode = '22023',
            message = 'p_silent_after must be longer than nothing and no longer than a year';
    end if;
    update howdah.workers as w
    set beat_at = howdah.clock(), silent_after = p_silent_after, given_up_at = null,
        -- beats come five times as often as necessary: half of that time without one is a gap
        steady_since = case when w.beat_at < howdah.clock() - w.silent_after / 2
                            then howdah.clock() else w.steady_since end,
        info = coalesce(p_info, w.info)
    where w.id = p_worker_id;
    if not found then
        insert into howdah.workers (id, started_at, beat_at, steady_since, silent_after, info)
        values (p_worker_id, howdah.clock(), howdah.clock(), howdah.clock(), p_silent_after,
                coalesce(p_info, '{}'))
        on conflict (id) do nothing;
    end if;
    return query
    select l.id from unnest(p_ids, p_attempts) as l (id, attempt)
    where not exists (
        select from howdah.jobs_live as j
        where j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt
    );
end;
$$;
