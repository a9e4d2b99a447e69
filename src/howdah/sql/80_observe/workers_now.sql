-- workers_now · all workers, whether each is alive, and what it runs now
--
-- Workers that beat, and up to 200 foreign workers that hold jobs and never beat.
--
--   p_shown  how many of its jobs are returned per worker
--   returns  one row per worker; attempts is a JSON array, the earliest start first
--
-- Reads the index jobs_held. Locks nothing.

create or replace function howdah.workers_now(p_shown int default 20)
returns table (id text, beats bool, alive bool, started_at timestamptz, beat_at timestamptz, silent_for interval,
               draining bool, holds int, info jsonb, attempts jsonb)
language sql stable
-- pinned plans: see jobs.sql
set enable_seqscan = off
set jit = off
begin atomic
    with recursive holders (worker_id) as (
        (select j.held_by from howdah.jobs_live as j where j.held_by is not null order by j.held_by limit 1)
        union all
        select next.worker_id from holders as h cross join lateral (
            select j.held_by from howdah.jobs_live as j where j.held_by > h.worker_id
            order by j.held_by limit 1
        ) as next (worker_id)
    ), members as (
        select w.id, true as beats, w.beat_at >= howdah.clock() - w.silent_after as alive, w.started_at, w.beat_at,
               howdah.clock() - w.beat_at as silent_for, w.info
        from howdah.workers as w
        union all
        (select h.worker_id, false, false, null, null, null, '{}' from holders as h
         where not exists (select from howdah.workers as w where w.id = h.worker_id)
         limit 200)
    )
    select m.id, m.beats, m.alive, m.started_at, m.beat_at, m.silent_for,
           exists (select from howdah.drain_requests as d where d.worker_id = m.id),
           (select count(*)::int from howdah.jobs_live as j where j.held_by = m.id),
           m.info,
           coalesce((
               select jsonb_agg(to_jsonb(a) order by a.started_at nulls last, a.claimed_at)
               from (select j.id, j.job_type, j.status::text, j.attempts as attempt, j.progress, j.current_stage,
                            j.claimed_at, j.started_at
                     from howdah.jobs_live as j where j.held_by = m.id
                     order by j.started_at nulls last, j.claimed_at limit p_shown) as a), '[]')
    from members as m
    order by m.alive desc, m.beats desc, m.started_at, m.id;
end;
