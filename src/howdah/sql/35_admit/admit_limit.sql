-- admit_limit · let in jobs that wait for one limit, as many as it allows now
--
-- Called by admit only, under its lock: it counts in snapshots that are younger than the lock. Jobs of paused types stay where they
-- are. A limit that was removed lets in all.
--
-- A rate is used up to `used_until`. Each start moves that time on by the time per start, as in GCRA. A job starts when it is
-- claimed, and that may be long after it was admitted. So the jobs that were in line at the last look and have left it count as started,
-- all of them at the latest claimed_at that is known; and the jobs that are in line now have their part of the burst reserved.
-- After a change of the rate, as many starts as before are used up.
--
--   p_limited_by  as in jobs: the name of the limit, with ':' and the key if it is per key
--   p_claimed_at  the latest claimed_at of the jobs that have left since the last look; null: not known
--   admitted      how many jobs it let in
--   next_look     when to look again; null: somebody will hand over a slot, or write a request
--
-- Locks as admit.

create or replace function howdah.admit_limit(p_limited_by text, p_claimed_at timestamptz)
returns table (admitted int, next_look interval)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now      timestamptz := howdah.clock();
    v_name     text        := split_part(p_limited_by, ':', 1);
    v_limit    howdah.limits;
    v_state    howdah.rate_states;
    v_each     interval;           -- the time per start
    v_slots    bigint      := 1000;  -- at most so many in one step
    v_tokens   bigint;             -- how many starts the rate allows
    v_claimed  timestamptz;
    v_in_line  int         := 0;
    v_types    text[];
begin
    admitted := 0;
    select l.* into v_limit from howdah.limits as l where l.name = v_name;
    if v_limit.per_key and p_limited_by = v_name then  -- the rule has changed: look at each key
        insert into howdah.admission_requests (kind, name) select 'limit', g.name from howdah.waiting_limits(v_name) as g (name);
        next_look := '0';
        return next;
        return;
    end if;
    if v_limit.at_once is not null then
        select v_limit.at_once - count(*) into v_slots from (
            select from howdah.jobs_live as j
            where j.limited_by = p_limited_by and j.limited_by is not null
              and j.admission = 'admitted' and j.admission is not null
            limit v_limit.at_once + 1) as holders;
        if v_limit.counted and v_slots >= 0 and not v_limit.per_key then
            -- somebody may have changed it in a transaction that is open: do not wait for that
            update howdah.limits as l set counted = false
            where l.ctid = any (array(select k.ctid from howdah.limits as k where k.name = v_name for update skip locked));
        end if;
        v_slots := least(v_slots, 1000);
    end if;
    if v_limit.rate is not null then
        v_each := v_limit.per / v_limit.rate;
        if v_each * v_limit.rate < v_limit.per then  -- rounded down
            v_each := v_each + interval '1 microsecond';
        end if;
        select s.* into v_state from howdah.rate_states as s where s.limited_by = p_limited_by;
        select count(*) filter (where h.worker_id is null), max(h.claimed_at) into v_in_line, v_claimed
        from (select j.worker_id, j.claimed_at from howdah.jobs_live as j
              where j.limited_by = p_limited_by and j.limited_by is not null
                and j.admission = 'admitted' and j.admission is not null) as h;
        if v_state.each <> v_each and v_state.used_until > v_now then
            -- the rate was changed: as many starts stay used up, but no more than a burst
            v_state.used_until := v_now + v_each * least(
                extract(epoch from v_state.used_until - v_now) / extract(epoch from v_state.each), v_limit.burst)::float8;
        end if;
        v_state.used_until := coalesce(v_state.used_until, '2000-01-01Z');  -- finite: PostgreSQL 14 to 16 have no infinite intervals
        if v_state.in_line > v_in_line then
            v_state.used_until :=
                greatest(v_state.used_until, least(v_now, coalesce(greatest(p_claimed_at, v_claimed), v_now)))
                + (v_state.in_line - v_in_line) * v_each;
        end if;
        v_tokens := floor(v_limit.burst - extract(epoch from greatest(v_state.used_until, v_now) - v_now)
                                          / extract(epoch from v_each) + 1e-6) - v_in_line;
        v_slots := least(v_slots, v_tokens);
    end if;

    if v_slots > 0 then
        with taken as materialized (
            select l.ctid from (
                select j.ctid from howdah.jobs_live as j
                where j.limited_by = p_limited_by and j.limited_by is not null
                  and j.admission = 'limit' and j.admission is not null
                  and (select true from howdah.paused_types as p where p.job_type = j.job_type) is null
                order by ~j.priority, j.arrival limit v_slots + 64) as c
            cross join lateral (
                select j.ctid from howdah.jobs_live as j
                where j.ctid = c.ctid and j.admission = 'limit'
                limit 1 for update skip locked) as l
            where l.ctid = c.ctid
            limit v_slots
        ), moved as (
            update howdah.jobs_live as j
            set admission = case when not coalesce(j.run_at > v_now, false) then 'admitted'
                                 when j.key is null then 'time' else 'backoff' end,
                ready_at = case when j.run_at > v_now then null else greatest(clock_timestamp(), j.run_at) end
            from taken as t where j.ctid = t.ctid
            returning j.job_type, j.admission
        )
        select count(*), array_agg(distinct m.job_type::text) into admitted, v_types
        from moved as m where m.admission = 'admitted';
        if v_types is not null then
            perform howdah.wake(v_types);
        end if;
    end if;
    if v_limit.rate is null
       or (v_in_line + admitted = 0 and v_state.used_until <= v_now) then  -- as if it had never been used
        delete from howdah.rate_states as s where s.limited_by = p_limited_by;
    else
        insert into howdah.rate_states as s (limited_by, used_until, each, in_line)
        values (p_limited_by, v_state.used_until, v_each, v_in_line + admitted)
        on conflict (limited_by) do update
        set used_until = excluded.used_until, each = excluded.each, in_line = excluded.in_line
        where (s.used_until, s.each, s.in_line) is distinct from (excluded.used_until, excluded.each, excluded.in_line);
    end if;

    if (select true from howdah.jobs_live as j
        where j.limited_by = p_limited_by and j.limited_by is not null
          and j.admission = 'limit' and j.admission is not null
          and (select true from howdah.paused_types as p where p.job_type = j.job_type) is null limit 1) is null then
        return next;
        return;
    end if;
    if v_limit.rate is not null and v_slots = v_tokens then
        -- worth a look when half a burst may start; while jobs are in line that depends on the workers
        next_look := greatest(interval '1 millisecond',
            v_state.used_until - v_now + (v_in_line + admitted + greatest(v_limit.burst / 2, 1) - v_limit.burst) * v_each);
        if v_in_line + admitted > 0 then
            next_look := least(next_look, interval '1 second');
        end if;
        insert into howdah.admission_requests (kind, name) values ('limit', p_limited_by);
    elsif v_slots > admitted
          -- all slots are taken: see admit_keys
          or ((select true from howdah.jobs_live as j
               where j.limited_by = p_limited_by and j.limited_by is not null
                 and j.admission = 'admitted' and j.admission is not null and j.xmax = '0'::xid
               limit 1) is null
              and (select true from howdah.jobs_live as j
                   where j.limited_by = p_limited_by and j.limited_by is not null
                     and j.admission = 'admitted' and j.admission is not null
                   limit 1 for key share skip locked) is null)
          or admitted = 1000 then
        next_look := interval '20 milliseconds';
        insert into howdah.admission_requests (kind, name) values ('limit', p_limited_by);
    end if;
    return next;
end;
$$;

-- waiting_limits · of a limit per key: all `limited_by` for which jobs wait

create or replace function howdah.waiting_limits(p_name text) returns setof text
language sql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
    with recursive walk (name) as (
        (select j.limited_by from howdah.jobs_live as j
         where j.limited_by >= p_name || ':' and j.limited_by < p_name || ';' and j.admission is not null
         order by j.limited_by limit 1)
        union all
        select n.limited_by from walk as w cross join lateral (
            select j.limited_by from howdah.jobs_live as j
            where j.limited_by > w.name and j.limited_by < p_name || ';' and j.admission is not null
            order by j.limited_by limit 1) as n
    )
    select w.name from walk as w;
$$;
