-- claim_run · pending (waits for a slot) → claimed
--
-- Claims the jobs that come next after jobs that a worker holds, where these have ordered keys. They are a run: the worker runs them one
-- after the other, in the order of enqueueing, each after the end of the one before. So one claim serves many jobs of a key.
--
-- The jobs of a run are admitted, and `ready_at` stays null: a row that a worker holds and whose ready_at is null is such a job. They hold the slot of the
-- key together, with the job before them. It is free when the last of them has ended: see hand_over. One that goes back waits for
-- the slot again.
--
--   p_worker_id, p_ids, p_attempts   the leases of jobs that the worker holds: one that it claimed from the line, or the last of a run that goes on
--   p_most                           how many jobs at most may follow each of them
--   returns  the jobs and the job that each of them follows, in the order in which they must run. Nothing for a job that is not held any
--            more, whose key is not ordered, or has a holder that is another worker's or arrived later, or whose type is paused. A run ends before the
--            first job that is not due, has expired, needs a limit or is locked
--
-- Locks the rows of p_ids (for no key update skip locked), so that none of them can end or go back before this has committed; and the rows that it
-- takes (for update skip locked). Wakes nobody.

create or replace function howdah.claim_run(p_worker_id text, p_ids uuid[], p_attempts int[], p_most int[])
returns table (head_id uuid, id uuid, job_type text, priority int, data jsonb, attempts int, max_attempts int,
               ready_at timestamptz, created_at timestamptz, claimed_at timestamptz, trace text)
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
#variable_conflict use_column
declare
    v_now      howdah.instant     := howdah.clock();  -- of the types of their columns: other values are checked
    v_worker   howdah.worker_name := p_worker_id;     -- again for every row
    v_claimed  howdah.job_status  := 'claimed';
    v_heads    uuid[];
    v_spots    tid[];
begin
    if coalesce(cardinality(p_ids) <> cardinality(p_attempts) or cardinality(p_ids) <> cardinality(p_most), true) then
        raise exception using errcode = '22023', message = 'p_ids, p_attempts and p_most must be arrays of one length';
    elsif p_ids = '{}' or current_setting('transaction_isolation') <> 'read committed' then
        return;  -- an old snapshot may not show all who hold the slot
    end if;
    with held as materialized (
        select h.id, h.job_type, h.key, h.arrival, h.ready_at, l.most
        from unnest(p_ids, p_attempts, p_most) as l (id, attempt, most)
        cross join lateral (
            select j.id, j.job_type, j.key, j.arrival, j.ready_at from howdah.jobs_live as j
            where j.id = any (array[l.id]) and j.worker_id = p_worker_id and j.attempts = l.attempt
              and j.admission = 'admitted' and j.key is not null
            limit 1
            for no key update skip locked
        ) as h
        where l.most > 0
          and (select true from howdah.type_limits as r where r.job_type = h.job_type and r.ordered) is not null
          and (select true from howdah.paused_types as p where p.job_type = h.job_type) is null
    ), alone as materialized (
        select h.* from held as h
        where (select true from howdah.jobs_live as o
               where o.job_type = h.job_type and o.key = h.key and o.key is not null
                 and o.admission < 'slot' and o.admission is not null and o.id <> h.id
                 and (h.ready_at is not null or o.worker_id is distinct from p_worker_id or o.arrival > h.arrival) limit 1) is null
    ), next as materialized (
        select a.id as head_id, n.spot, n.nth
        from alone as a
        -- the variables of a function have the collation of its arguments: with that of keys, it could not search the index by type
        cross join lateral howdah.next_in_order(a.job_type, a.key collate "default", a.most) with ordinality as n (spot, nth)
    ), locked as materialized (
        select n.head_id, n.nth, l.ctid
        from next as n
        cross join lateral (
            select j.ctid from howdah.jobs_live as j
            where j.ctid = n.spot and j.admission = 'slot' and j.worker_id is null and j.limited_by is null
              and (j.run_at is null or j.run_at <= v_now) and (j.expires_at is null or j.expires_at > v_now)
            limit 1
            for update skip locked
        ) as l
    ), taken as (  -- up to the first that is left out
        select s.head_id, s.nth, s.ctid
        from (select k.*, row_number() over (partition by k.head_id order by k.nth) as step from locked as k) as s
        where s.step = s.nth
    )
    select array_agg(t.head_id order by t.head_id, t.nth), array_agg(t.ctid order by t.head_id, t.nth)
    into v_heads, v_spots from taken as t;
    if v_spots is null then
        return;
    end if;
    -- found by ctid: the rows are locked, so nobody can have moved them
    return query
    with moved as (
        update howdah.jobs_live as j
        set admission = 'admitted', status = v_claimed, worker_id = v_worker, claimed_at = v_now,
            -- those of a worker that never beats enter jobs_held at once, as in claim
            held_by = case when not exists (select from howdah.workers as w where w.id = p_worker_id) then v_worker end,
            attempts = least(j.attempts, 2147483646) + 1, started_at = null
        from unnest(v_heads, v_spots) with ordinality as t (head_id, ctid, nth)
        where j.ctid = t.ctid
        returning t.head_id, t.nth, j.*
    )
    select m.head_id, m.id, m.job_type::text, m.priority, m.data::jsonb, m.attempts::int, m.max_attempts::int,
           v_now::timestamptz, m.created_at::timestamptz, m.claimed_at::timestamptz, m.trace::text
    from moved as m
    order by m.nth;
end;
$$;
