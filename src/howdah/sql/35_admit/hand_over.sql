-- hand_over · give slots that become free to the next jobs that wait for them, one for one
--
-- Called in the transaction that frees the slots, after the rows of their jobs were deleted or updated, in a statement of its own: what this
-- snapshot does not show is left to `admit`. The number of jobs that hold a slot stays the same, so nothing is counted and
-- nobody waits. After a limit was lowered, the jobs that are left are counted, and slots that are too many are not handed over.
--
-- An ordered key has one slot, and several jobs of a run may hold it: see claim_run. It is free when no job holds it any more. While one is left that nobody
-- has begun to end, its end will hand the slot over. If others are about to end all that are left, each of us sees the jobs of the
-- other: that is left to `admit`.
--
-- While another session holds a snapshot, the entries of jobs that have left stay in the indexes. They are at the beginning of each key and
-- limit, and every hand-over would read them all. A hand-over that has read many sets a time, until which keys that are not ordered and
-- limits are searched from the place of a job that has ended. What is before it, such as a job that was committed late or one of
-- a higher priority, waits until then, or until nobody waits behind: that is left to `admit`.
--
--   p_slots  the slots of jobs that have ended or were put back
--   p_worker_id, p_claims   jobs of these types that join the line are claimed for this worker at once: see complete_and_claim
--   p_back   true: these jobs wait again. Nobody sees that before this commits, so a slot that is still held is left to `admit`
--   returns  the jobs that were claimed
--
-- Locks the rows it moves (skip locked); where one was locked it leaves a request. Wakes idle workers that know the types.

create or replace function howdah.hand_over(
    p_slots      howdah.freed_slot[],
    p_worker_id  text    default null,
    p_claims     text[]  default '{}',
    p_back       bool    default false
) returns uuid[]
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
    -- of the types of their columns: a value of another type is checked again for every row
    v_now        howdah.instant     := howdah.clock();
    v_ready      howdah.instant     := clock_timestamp();  -- not now(): claims may have passed the place of that time
    v_never      howdah.instant;
    v_worker     howdah.worker_name := p_worker_id;
    v_status     howdah.job_status  := 'claimed';
    v_foreign    howdah.worker_name;  -- the worker if it never beats: its jobs enter jobs_held at once, as in claim
    v_blind      bool    := current_setting('transaction_isolation') <> 'read committed';  -- an old snapshot
    v_placed     bool    := (p_slots[1]).arrival is not null;
    v_behind     bool    := v_placed and coalesce(
        pg_sequence_last_value('howdah.search_behind_until') > extract(epoch from clock_timestamp()) * 1000, false);
    v_entries    bigint  := pg_stat_get_xact_tuples_returned('howdah.jobs_by_key'::regclass)
                            + pg_stat_get_xact_tuples_returned('howdah.jobs_by_limit'::regclass);
    v_types      text[];     -- of jobs that joined the line
    v_more       text[];
    v_limits     text[];     -- limits at which a job has arrived, or that have a free slot now
    v_job_types  text[];     -- keys that have a free slot now
    v_keys       text[];
    v_claims     text[]  := '{}';
    v_claimed    uuid[];
    v_also       uuid[];
begin
    if p_claims <> '{}' then
        v_claims := array(select c from unnest(p_claims) as c
                          where not exists (select from howdah.paused_types as p where p.job_type = c));
        v_foreign := case when not exists (select from howdah.workers as w where w.id = p_worker_id) then p_worker_id end;
    end if;
    if exists (select from unnest(p_slots) as s where s.key is not null) then
        with freed as materialized (
            select s.job_type, s.key, case when r.ordered then 1 else count(*) end as slots, coalesce(r.ordered, false) as ordered, r.fair,
                   case when r.counted then r.at_once end as most,
                   -- a fair job may have another place at its limit than in its key
                   min(array[s.rank, -s.arrival]) filter (where v_behind and r.fair is not true) as place
            from unnest(p_slots) as s left join howdah.type_limits as r on r.job_type = s.job_type
            where s.key is not null and (r.job_type is null or r.at_once is not null)
            group by s.job_type, s.key, r.ordered, r.fair, r.counted, r.at_once
        ), free as materialized (
            select f.*, case when f.ordered
                             then case when v_blind or (
                                 select true from howdah.jobs_live as j
                                 where j.job_type = f.job_type and j.key = f.key and j.key is not null
                                   and j.admission < 'slot' and j.admission is not null limit 1) then 0 else 1 end
                             when f.most is null then f.slots
                             else greatest(0, least(f.slots, f.most - (select count(*) from (
                                 select from howdah.jobs_live as j
                                 where j.job_type = f.job_type and j.key = f.key and j.key is not null
                                   and j.admission < 'slot' and j.admission is not null
                                 limit f.most) as holders))) end as slots_left,
                   coalesce(f.place[1], -2147483648)::int as rank, coalesce(-f.place[2], 0) as arrival
            from freed as f
            where not f.ordered or p_back or (
                select true from howdah.jobs_live as j
                where j.job_type = f.job_type and j.key = f.key and j.key is not null
                  and j.admission < 'slot' and j.admission is not null
                  and (j.xmax = '0'::xid or j.xmax = j.xmin)  -- the latter: only locked, by the transaction that wrote it
                limit 1) is null
        ), taken as materialized (
            select f.job_type, f.key, f.fair, l.ctid,
                   howdah.may_claim(v_claims, f.job_type, l.limited_by, l.run_at, l.expires_at, v_now) as claims
            from free as f
            cross join lateral (
                (select l.*
                 from (select howdah.next_in_order(f.job_type, f.key) as ctid where f.ordered and f.slots_left > 0) as c
                 cross join lateral (
                     select j.ctid, j.limited_by, j.run_at, j.expires_at from howdah.jobs_live as j
                     where j.ctid = c.ctid and j.admission = 'slot'
                     limit 1 for update skip locked) as l
                 where l.ctid = c.ctid)  -- not a version that this statement does not see
                union all
                (select l.*
                 from (
                     select j.ctid from howdah.jobs_live as j
                     where j.job_type = f.job_type and j.key = f.key and j.key is not null
                       and j.admission = 'slot' and j.admission is not null and (~j.priority, j.arrival) > (f.rank, f.arrival)
                     order by ~j.priority, j.arrival limit case when f.ordered then 0 else f.slots_left * 2 + 16 end) as c
                 cross join lateral (
                     select j.ctid, j.limited_by, j.run_at, j.expires_at from howdah.jobs_live as j
                     where j.ctid = c.ctid and j.admission = 'slot'
                     limit 1 for update skip locked) as l
                 where l.ctid = c.ctid
                 limit f.slots_left)) as l
        ), moved as (
            update howdah.jobs_live as j
            set admission = case when j.run_at > v_now then case when j.claimed_at is null then 'time' else 'backoff' end
                                 when j.limited_by is not null then 'limit' else 'admitted' end,
                ready_at = case when j.run_at > v_now or j.limited_by is not null then v_never
                                when j.run_at > v_ready then j.run_at else v_ready end,
                -- its turn at the limit, too: behind the jobs of other keys that wait there now
                arrival = case when t.fair and j.limited_by is not null then nextval('howdah.arrivals') else j.arrival end,
                status = case when t.claims then v_status else j.status end,
                worker_id = case when t.claims then v_worker else j.worker_id end,
                claimed_at = case when t.claims then v_now else j.claimed_at end,
                started_at = v_never,
                held_by = case when t.claims then v_foreign else j.held_by end,
                attempts = case when t.claims then least(j.attempts, 2147483646) + 1 else j.attempts end
            from taken as t
            where j.ctid = t.ctid
            returning j.id, j.job_type, j.key, j.admission, j.limited_by, t.claims as claimed
        ), unused as (
            select s.job_type, s.key
            from (select f.job_type, f.key, f.slots from free as f
                  union all
                  select t.job_type, t.key, 0 from taken as t) as s
            group by s.job_type, s.key having count(*) <= max(s.slots)
            union
            select m.job_type, m.key from moved as m where m.admission = 'time'
        )
        select (select array_agg(distinct m.job_type::text) from moved as m where m.admission = 'admitted' and not m.claimed),
               (select array_agg(m.id) from moved as m where m.claimed),
               (select array_agg(distinct m.limited_by) from moved as m where m.admission = 'limit'),
               (select array_agg(u.job_type) from unused as u), (select array_agg(u.key) from unused as u)
        into v_types, v_claimed, v_limits, v_job_types, v_keys;
        if v_blind then
            insert into howdah.admission_requests (kind, job_type, name)
            select distinct 'key', s.job_type, s.key from unnest(p_slots) as s where s.key is not null;
        elsif v_keys is not null then
            insert into howdah.admission_requests (kind, job_type, name)
            select 'key', k.job_type, k.key from unnest(v_job_types, v_keys) as k (job_type, key)
            where v_behind or (
                   select true from howdah.jobs_live as j
                   where j.job_type = k.job_type and j.key = k.key and j.key is not null
                     and j.admission = 'slot' and j.admission is not null limit 1) is not null;
        end if;
    end if;

    if exists (select from unnest(p_slots) as s where s.limited_by is not null) then
        with freed as materialized (
            select s.limited_by, count(*) as slots, max(s.claimed_at) as claimed_at,
                   min(array[s.rank, -s.arrival]) filter (where v_behind) as place
            from unnest(p_slots) as s where s.limited_by is not null group by s.limited_by
        ), of_admit as (
            -- these have a rate, or too many jobs hold a slot: only admit may let in others
            insert into howdah.admission_requests (kind, name, claimed_at)
            select 'limit', f.limited_by, f.claimed_at
            from freed as f join howdah.limits as l on l.name = split_part(f.limited_by, ':', 1)
            where l.rate is not null or l.counted or v_blind
        ), free as materialized (
            select f.limited_by, f.slots, coalesce(f.place[1], -2147483648)::int as rank, coalesce(-f.place[2], 0) as arrival
            from freed as f join howdah.limits as l on l.name = split_part(f.limited_by, ':', 1)
            where l.rate is null and not l.counted
        ), taken as materialized (
            select f.limited_by, l.ctid, howdah.may_claim(v_claims, l.job_type, null, l.run_at, l.expires_at, v_now) as claims
            from free as f
            cross join lateral (
                select l.*
                from (
                    select j.ctid from howdah.jobs_live as j
                    where j.limited_by = f.limited_by and j.limited_by is not null
                      and j.admission = 'limit' and j.admission is not null and (~j.priority, j.arrival) > (f.rank, f.arrival)
                      and (select true from howdah.paused_types as p where p.job_type = j.job_type) is null
                    order by ~j.priority, j.arrival limit f.slots * 2 + 64) as c
                cross join lateral (
                    select j.ctid, j.job_type, j.run_at, j.expires_at from howdah.jobs_live as j
                    where j.ctid = c.ctid and j.admission = 'limit'
                    limit 1 for update skip locked) as l
                where l.ctid = c.ctid
                limit f.slots) as l
        ), moved as (
            update howdah.jobs_live as j
            set admission = case when not coalesce(j.run_at > v_now, false) then 'admitted'
                                 when j.key is null then 'time' else 'backoff' end,
                ready_at = case when j.run_at > v_now then v_never when j.run_at > v_ready then j.run_at else v_ready end,
                status = case when t.claims then v_status else j.status end,
                worker_id = case when t.claims then v_worker else j.worker_id end,
                claimed_at = case when t.claims then v_now else j.claimed_at end,
                started_at = v_never,
                held_by = case when t.claims then v_foreign else j.held_by end,
                attempts = case when t.claims then least(j.attempts, 2147483646) + 1 else j.attempts end
            from taken as t
            where j.ctid = t.ctid
            returning j.id, j.job_type, j.admission, j.limited_by, t.claims as claimed
        ), unused as (
            select s.limited_by
            from (select f.limited_by, f.slots from free as f union all select t.limited_by, 0 from taken as t) as s
            group by s.limited_by having count(*) <= max(s.slots)
            union
            select m.limited_by from moved as m where m.admission <> 'admitted'
        )
        select (select array_agg(distinct m.job_type::text) from moved as m where m.admission = 'admitted' and not m.claimed),
               (select array_agg(m.id) from moved as m where m.claimed),
               (select array_agg(u.limited_by) from unused as u)
        into v_more, v_also, v_job_types;
        v_types := v_types || v_more;
        v_claimed := v_claimed || v_also;
        v_limits := v_limits || v_job_types;
    end if;

    if v_placed and not v_behind then
        v_entries := pg_stat_get_xact_tuples_returned('howdah.jobs_by_key'::regclass)
                     + pg_stat_get_xact_tuples_returned('howdah.jobs_by_limit'::regclass) - v_entries;
        if v_entries > 1000 + 5 * cardinality(p_slots) then
            perform setval('howdah.search_behind_until',
                           (extract(epoch from clock_timestamp()) * 1000 + least(v_entries / 100, 5000))::bigint);
        end if;
    end if;

    if v_limits is not null then
        insert into howdah.admission_requests (kind, name)
        select distinct 'limit', g.name from unnest(v_limits) as g (name)
        where v_behind or (
               select true from howdah.jobs_live as j
               where j.limited_by = g.name and j.limited_by is not null
                 and j.admission = 'limit' and j.admission is not null limit 1) is not null;
    end if;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    if exists (select from howdah.admission_requests as r where r.xid = pg_current_xact_id()) then
        perform howdah.notify_admission();
    end if;
    return v_claimed;
end;
$$;

-- may_claim · whether a job that gets a slot can be claimed at once: its type is one of p_claims, and it has nothing else to wait for

create or replace function howdah.may_claim(
    p_claims      text[],
    p_job_type    text,
    p_limited_by  text,
    p_run_at      timestamptz,
    p_expires_at  timestamptz,
    p_now         timestamptz
) returns bool
language sql immutable
begin atomic
    select p_job_type = any (p_claims) and p_limited_by is null and coalesce(p_run_at <= p_now, true)
           and coalesce(p_expires_at > p_now, true);
end;
