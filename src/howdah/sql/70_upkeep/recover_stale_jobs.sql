-- recover · claimed, running → pending, or → failed on the last attempt
--
-- Takes jobs away from workers that are silent. A worker that beats is silent when its last beat is older than its
-- `silent_after`, however long its jobs take. A foreign worker that never
-- beats has p_timeout from its claim. The attempt counts. A job that has lost as many workers in a row as the
-- option max_lost_workers fails, however many attempts it may have: the job may be what ends them. A job that has expired
-- meanwhile fails too, because no attempt may begin.
--
--   returns  each id this call moved, the status it has now, and the worker that held it
--
-- The jobs of a run are taken away together with all jobs of it that wait before them, or not now: see claim_run.
--
-- Locks rows of workers, then of jobs_live in id order, skipping what is being settled at
-- this moment. Wakes idle workers that know the types, and those who follow these jobs.

create or replace function howdah.recover_stale_jobs(p_timeout interval default '5 minutes')
returns table (id uuid, status text, worker_id text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
    v_now      timestamptz := howdah.clock();
    v_lost     record;
    v_again    uuid[];
    v_watched  uuid[];
    v_types    text[];
    v_limit    int := howdah.option('max_attempts_limit');
    v_deaths   int := howdah.option('max_lost_workers');
    v_errors   text[];
    v_given_up text[];
    v_slots    howdah.freed_slot[];
begin
    if p_timeout is null or p_timeout <= '0' then
        raise exception using errcode = '22023', message = 'p_timeout must be longer than nothing';
    end if;

    with given_up as (
        update howdah.workers as w set given_up_at = v_now
        where w.beat_at < v_now - w.silent_after and w.given_up_at is null
        returning w.id
    )
    select array_agg(g.id) into v_given_up from given_up as g;
    perform howdah.enter_held(v_given_up, p_timeout);

    for v_lost in
        -- Foreign workers, which never beat, are searched between the ids of those that did. What those have
        -- settled leaves dead entries in jobs_held, and under a long transaction reading all of them
        -- would take longer each time.
        with recursive gaps (low, high) as (
            select '', min(w.id) from howdah.workers as w
            union all
            select w.id, lead(w.id) over (order by w.id) from howdah.workers as w
        ), foreign_workers (worker_id, high, holds) as (
            select low, high, false from gaps
            union all
            select next.worker_id, s.high, true from foreign_workers as s
            cross join lateral (
                (select j.held_by from howdah.jobs_live as j
                 where s.high is not null and j.held_by > s.worker_id and j.held_by < s.high
                 order by j.held_by limit 1)
                union all
                (select j.held_by from howdah.jobs_live as j
                 where s.high is null and j.held_by > s.worker_id
                 order by j.held_by limit 1)
            ) as next (worker_id)
        ), silent as (
            select w.id as worker_id, 'infinity'::timestamptz as claimed_before,
                   format('worker %s went silent: no beat for more than %s', w.id, w.silent_after) as error
            from howdah.workers as w where w.beat_at < v_now - w.silent_after
            union all
            select s.worker_id, v_now - p_timeout,
                   format('worker %s held it for more than %s and never beat', s.worker_id, p_timeout)
            from foreign_workers as s where s.holds
        )
        select s.worker_id, s.error, array_agg(held.id) as ids, array_agg(held.attempts) as attempts
        from silent as s
        cross join lateral (
            -- first the ids, by jobs_held; then the rows in id order, to lock them. In one
            -- step the planner would read all ids of the table, because they come in order.
            select j.id, j.attempts from howdah.jobs_live as j
            where j.id = any (array(
                    select h.id from howdah.jobs_live as h
                    where h.held_by = s.worker_id and h.worker_id = s.worker_id
                      and coalesce(h.claimed_at, '-infinity') < s.claimed_before))
              and j.worker_id = s.worker_id
            order by j.id
            for update skip locked
        ) as held
        group by s.worker_id, s.error
    loop
        -- one that is locked may be ending: then the jobs before it must not run again
        with keys as (
            select distinct j.job_type, j.key from howdah.jobs_live as j
            where j.id = any (v_lost.ids) and j.key is not null and j.admission = 'admitted'
        ), partly as materialized (
            select k.job_type, k.key, r.id, r.held_by from keys as k
            cross join lateral (
                select j.id, j.held_by from howdah.jobs_live as j
                where j.job_type = k.job_type and j.key = k.key and j.key is not null
                  and j.admission = 'admitted' and j.admission is not null
                  and j.worker_id = v_lost.worker_id and j.ready_at is null and j.id <> all (v_lost.ids)) as r
        ), entered as (  -- next time
            update howdah.jobs_live as j set held_by = j.worker_id
            where j.id = any (array(
                select l.id from howdah.jobs_live as l
                where l.id = any (array(select p.id from partly as p where p.held_by is null))
                for update skip locked))
        )
        select array_agg(j.id order by j.id), array_agg(j.attempts order by j.id) into v_lost.ids, v_lost.attempts
        from howdah.jobs_live as j
        where j.id = any (v_lost.ids)
          and not exists (select from partly as p where p.job_type = j.job_type and p.key = j.key);
        continue when v_lost.ids is null;

        with again as (
            update howdah.jobs_live as j
            set status = 'pending', worker_id = null, held_by = null, claimed_at = null, started_at = null,
                last_error = v_lost.error,
                errors = howdah.append_error(j.errors, j.attempts, j.worker_id, v_lost.error, null, j.started_at, v_now,
                                           p_lost => true),
                ready_at = case when j.admission is not null and (j.limited_by is not null or j.ready_at is null) then null
                                else coalesce(j.ready_at, now()) end,
                admission = case when j.admission is not null and j.ready_at is null then 'slot'
                                 when j.admission is not null and j.limited_by is not null then 'limit' else j.admission end
            where j.id = any (v_lost.ids) and j.attempts < least(j.max_attempts, v_limit)
              and howdah.lost_in_a_row(j.errors) < v_deaths - 1
              and (j.expires_at is null or j.expires_at > v_now)
            returning j.id, j.watched, j.job_type, j.key, j.limited_by, j.admission
        )
        select array_agg(a.id), array_agg(a.id) filter (where a.watched), array_agg(distinct a.job_type),
               array_agg(row(a.job_type, case a.admission when 'slot' then a.key end, a.limited_by, null, null, null)::howdah.freed_slot)
                   filter (where a.admission in ('limit', 'slot'))
        into v_again, v_watched, v_types, v_slots from again as a;
        if v_slots is not null then
            perform howdah.hand_over(v_slots, p_back => true);
        end if;

        perform howdah.notify_followers(v_watched);
        if v_types is not null then
            perform howdah.wake(v_types);
        end if;
        return query select a, 'pending', v_lost.worker_id from unnest(v_again) as a;
        if coalesce(cardinality(v_again), 0) < cardinality(v_lost.ids) then
            v_errors := array(
                select v_lost.error || case when j.attempts < least(j.max_attempts, v_limit)
                    then case when j.expires_at <= v_now then format(', and it expired at %s', howdah.in_utc(j.expires_at))
                              else format(', as %s workers in a row that held it (option max_lost_workers)', v_deaths) end
                    else ', on its last attempt' end
                from unnest(v_lost.ids) with ordinality as l (id, nth)
                left join howdah.jobs_live as j on j.id = any (array[l.id])
                order by l.nth);
            return query select f, 'failed', v_lost.worker_id from howdah.finish(
                'failed', v_lost.worker_id, v_lost.ids, v_lost.attempts, v_errors, p_lost => true) as f;
        end if;
    end loop;
end;
$$;
