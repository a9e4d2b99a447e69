-- run_now · pending (waiting) → pending (in line)
--
-- Puts jobs that wait for their `run_at`, or for a retry, into the line at once. A job that needs a slot waits for that next. A sleep of
-- these jobs ends; a job that waits for a signal looks for it again.
--
--   returns  the ids this call moved; a missing id was already in line, is held by a worker or has ended
--
-- Locks the rows in id order. Wakes idle workers that know the types, and those who follow.

create or replace function howdah.run_now(p_ids uuid[]) returns setof uuid
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
    v_moved  uuid[] := array(select howdah.join_line(p_ids));
begin
    update howdah.job_steps as s set until = howdah.clock()
    where s.job_id = any (v_moved) and s.kind = 'sleep' and s.until > howdah.clock();
    return query select unnest(v_moved);
end;
$$;

-- join_line · the same without the sleeps: for a job whose signal has come
--
-- Two sessions that signal one job both have it locked for key share, so this takes no stronger lock than its update needs.

create or replace function howdah.join_line(p_ids uuid[]) returns setof uuid
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
    v_moved    uuid[];
    v_watched  uuid[];
    v_types    text[];
    v_requests int;
begin
    with moved as (
        update howdah.jobs_live as j
        set run_at = howdah.clock(),
            ready_at = case when j.admission is null or (j.admission = 'backoff' and j.limited_by is null) then now() end,
            admission = case when j.admission is null then null
                             when j.admission = 'time' and j.key is not null then 'slot'
                             when j.limited_by is not null then 'limit'
                             else 'admitted' end
        where j.id = any (array(
            select k.id from howdah.jobs_live as k
            where k.id = any (p_ids) and coalesce(k.worker_id is null, false) and coalesce(k.ready_at is null, false)
              and (k.admission is null or k.admission in ('time', 'backoff'))
            order by k.id for no key update))
        returning j.id, j.watched, j.job_type, j.key, j.limited_by, j.admission
    ), requested as (
        insert into howdah.admission_requests (kind, job_type, name)
        select distinct case m.admission when 'slot' then 'key' else 'limit' end,
               case m.admission when 'slot' then m.job_type::text end,
               case m.admission when 'slot' then m.key else m.limited_by end
        from moved as m where m.admission in ('slot', 'limit')
        returning 1
    )
    select array_agg(id), array_agg(id) filter (where watched),
           array_agg(distinct job_type) filter (where coalesce(admission, 'admitted') = 'admitted'),
           (select count(*) from requested)
    into v_moved, v_watched, v_types, v_requests from moved;
    if v_requests > 0 then
        perform howdah.notify_admission();
    end if;
    perform howdah.notify_followers(v_watched);
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return query select unnest(v_moved);
end;
$$;
