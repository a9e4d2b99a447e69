-- admit_keys · let in jobs of these keys, as many as each has free slots
--
-- Called by admit only, under its lock: it counts in snapshots that are younger than the lock.
--
--   limits     the limits for which jobs wait now that have got the slot of their key
--   admitted   how many jobs it moved on
--   next_look  when to look again; null: somebody will hand over a slot, or write a request
--
-- Locks as admit.

create or replace function howdah.admit_keys(p_job_types text[], p_keys text[])
returns table (limits text[], admitted int, next_look interval)
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
    v_now    timestamptz := howdah.clock();
    v_types  text[];
    v_open   bool[];  -- per key: whether a slot is still free
begin
    with asked as materialized (
        select a.job_type, a.key, a.nth, coalesce(r.ordered, false) as ordered, r.fair,
               -- without a limit: in steps of 1000 jobs
               case when r.job_type is not null and r.at_once is null then 1000
                    else coalesce(r.at_once, 1) - (select count(*) from (
                        select from howdah.jobs_live as j
                        where j.job_type = a.job_type and j.key = a.key and j.key is not null
                          and j.admission < 'slot' and j.admission is not null
                        limit coalesce(r.at_once, 1)) as holders) end as slots
        from unnest(p_job_types, p_keys) with ordinality as a (job_type, key, nth)
        left join howdah.type_limits as r on r.job_type = a.job_type
    ), taken as materialized (
        select a.nth, a.job_type, a.slots, a.fair,
               case when a.slots <= 0 then '{}'
               when a.ordered then array(
                   select l.ctid from (select howdah.next_in_order(a.job_type, a.key) as ctid) as c
                   cross join lateral (
                       select j.ctid from howdah.jobs_live as j
                       where j.ctid = c.ctid and j.admission = 'slot'
                       limit 1 for update skip locked) as l
                   where l.ctid = c.ctid)  -- not a version that this statement does not see
               else array(
                   select l.ctid from (
                       select j.ctid from howdah.jobs_live as j
                       where j.job_type = a.job_type and j.key = a.key and j.key is not null
                         and j.admission = 'slot' and j.admission is not null
                       order by ~j.priority, j.arrival limit least(a.slots, 1000) + 16) as c
                   cross join lateral (
                       select j.ctid from howdah.jobs_live as j
                       where j.ctid = c.ctid and j.admission = 'slot'
                       limit 1 for update skip locked) as l
                   where l.ctid = c.ctid
                   limit least(a.slots, 1000)) end as spots
        from asked as a
    ), moved as (
        update howdah.jobs_live as j
        set admission = case when j.run_at > v_now then case when j.claimed_at is null then 'time' else 'backoff' end
                             when j.limited_by is not null then 'limit' else 'admitted' end,
            ready_at = case when j.run_at > v_now or j.limited_by is not null then null else greatest(clock_timestamp(), j.run_at) end,
            -- as in hand_over
            arrival = case when t.fair and j.limited_by is not null then nextval('howdah.arrivals') else j.arrival end
        from (select unnest(t.spots) as ctid, t.fair from taken as t) as t
        where j.ctid = t.ctid
        returning j.job_type, j.key, j.admission, j.limited_by
    )
    select (select array_agg(distinct m.limited_by) from moved as m where m.admission = 'limit'),
           (select count(*) from moved),
           (select array_agg(distinct m.job_type::text) from moved as m where m.admission = 'admitted'),
           (select array_agg(cardinality(t.spots) < t.slots
                             or exists (select from moved as m where m.job_type = t.job_type and m.admission = 'time')
                             order by t.nth) from taken as t)
    into limits, admitted, v_types, v_open;

    -- Where jobs still wait: a slot is free, but their rows are locked; or all slots are taken. Then somebody must hand one over
    -- whose snapshot is still to come: see request_unless_sure.
    with waiting as materialized (
        select k.job_type, k.key, k.open from unnest(p_job_types, p_keys, v_open) as k (job_type, key, open)
        where (select true from howdah.jobs_live as j
               where j.job_type = k.job_type and j.key = k.key and j.key is not null
                 and j.admission = 'slot' and j.admission is not null limit 1) is not null
    ), again as (
        insert into howdah.admission_requests (kind, job_type, name)
        select 'key', w.job_type, w.key from waiting as w
        where case when w.open then true
                   -- nobody has begun to end this job
                   when (select true from howdah.jobs_live as j
                         where j.job_type = w.job_type and j.key = w.key and j.key is not null
                           and j.admission < 'slot' and j.admission is not null and j.xmax = '0'::xid
                         limit 1) is not null then false
                   -- nobody can end this job before this transaction is over
                   else (select true from howdah.jobs_live as j
                         where j.job_type = w.job_type and j.key = w.key and j.key is not null
                           and j.admission < 'slot' and j.admission is not null
                         limit 1 for key share skip locked) is null end
        returning 1
    )
    select case when exists (select from again) then interval '20 milliseconds' end into next_look;
    if v_types is not null then
        perform howdah.wake(v_types);
    end if;
    return next;
end;
$$;
