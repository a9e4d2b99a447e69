-- admit · pending (waits for a slot) → pending (in line)
--
-- Lets jobs into the line where slots are free. The only function that lets in more jobs than have left; it may take a moment, so it
-- has a transaction of its own, or is the last call of one. It looks at the keys and limits in admission_requests. What it
-- cannot decide, because somebody has locked a row, it requests again.
--
--   p_since    the as_of of this session's last look; null: look at all requests
--   p_limit    how many requests at most; where there are more, it also takes later ones for the same keys
--   p_now      a snapshot that this transaction took before it wrote anything; null: taken here
--   as_of      for the next call. It reads only requests of transactions that were not over then
--   requests   how many requests it took
--   admitted   how many jobs it moved on
--   next_look  when it should be called again; null: when there is a new request
--   returns    no row while another session looks, or in a transaction that is not read committed: it would count in an old snapshot
--
-- Holds (lock_space, 6) until the transaction ends; tries it and does not wait. Locks the rows it moves (skip locked), and may lock a
-- row of a job that holds a slot (for key share skip locked). Wakes idle workers that know the types.

create or replace function howdah.admit(p_since text default null, p_limit int default 2000, p_now text default null)
returns table (as_of text, requests int, admitted int, next_look interval)
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
    v_now        pg_snapshot;
    v_writes     bool;         -- whether this transaction has written before: its own requests would seem seen
    v_from       xid8   := coalesce(pg_snapshot_xmax(p_since::pg_snapshot), '0'::xid8);
    v_open       xid8[] := case when p_since is not null then array(select pg_snapshot_xip(p_since::pg_snapshot)) end;
    v_rows       tid[];
    v_same       tid[] := '{}';  -- later requests for the same keys: one look is enough
    v_job_types  text[];
    v_keys       text[];
    v_walks      text[];
    v_after      text[];
    v_limits     text[];
    v_claimed    timestamptz[];
    v_rules      text[];
    v_barriers   text[];
    v_more       record;
    v_nth        int;
begin
    if current_setting('transaction_isolation') <> 'read committed'
       or not pg_try_advisory_xact_lock(howdah.lock_space(), 6) then
        return;
    end if;
    v_now := coalesce(p_now::pg_snapshot, pg_current_snapshot());
    v_writes := p_now is null and pg_current_xact_id_if_assigned() is not null;
    v_rows := array(select r.ctid from howdah.admission_requests as r where r.xid >= v_from order by r.xid limit p_limit);
    if cardinality(v_rows) = p_limit then
        v_same := array(
            select l.ctid from (
                select r.*, min(r.nth) over (partition by r.job_type, r.name) as first from (
                    select r.ctid, r.job_type, r.name, r.kind, row_number() over (order by r.xid) as nth
                    from howdah.admission_requests as r where r.xid >= v_from order by r.xid limit 30 * p_limit) as r
                where r.kind = 'key') as l
            where l.first <= p_limit and l.nth > p_limit);
    end if;
    if v_open <> '{}' then
        v_rows := v_rows || array(select r.ctid from howdah.admission_requests as r
                                  where r.xid = any (v_open) and r.xid < v_from limit p_limit);
    end if;
    requests := cardinality(v_rows);
    if requests >= p_limit then  -- also the latest ones: a new key does not wait for all that were written before
        v_rows := v_rows || array(select r.ctid from howdah.admission_requests as r
                                  where r.xid >= v_from order by r.xid desc limit p_limit / 4);
    end if;
    v_rows := v_rows || v_same;
    admitted := 0;
    -- v_now is older than the look: a request that it does not show is read next time
    as_of := case when requests < p_limit and not v_writes then v_now::text else p_since end;
    if requests >= p_limit then
        next_look := '0';
    end if;
    if requests = 0 then
        return next;
        return;
    end if;

    with asked as (
        delete from howdah.admission_requests as r where r.ctid = any (v_rows) returning r.*
    ), keys as (
        select distinct a.job_type, a.name from asked as a where a.kind = 'key'
    ), limits as (
        select a.name, max(a.claimed_at) as claimed_at from asked as a where a.kind = 'limit' group by a.name
    ), walks as (
        select a.job_type, min(a.name) as name from asked as a where a.kind = 'type' group by a.job_type
    ), rules as (
        -- as text and bigint: PostgreSQL 14 has no max(xid8)
        select a.job_type, max(coalesce(a.name, pg_snapshot_xmax(v_now)::text)::bigint)::text as barrier
        from asked as a where a.kind = 'rule' group by a.job_type
    )
    select (select array_agg(k.job_type order by k.job_type, k.name) from keys as k),
           (select array_agg(k.name order by k.job_type, k.name) from keys as k),
           (select array_agg(l.name order by l.name) from limits as l),
           (select array_agg(l.claimed_at order by l.name) from limits as l),
           (select array_agg(w.job_type order by w.job_type) from walks as w),
           (select array_agg(w.name order by w.job_type) from walks as w),
           (select array_agg(r.job_type order by r.job_type) from rules as r),
           (select array_agg(r.barrier order by r.job_type) from rules as r)
    into v_job_types, v_keys, v_limits, v_claimed, v_walks, v_after, v_rules, v_barriers;

    for v_nth in 1 .. coalesce(cardinality(v_rules), 0) loop
        if v_barriers[v_nth]::xid8 <= pg_snapshot_xmin(v_now) then
            perform howdah.apply_type_limit(v_rules[v_nth], p_again => false);
            next_look := '0';
        else
            insert into howdah.admission_requests (kind, job_type, name) values ('rule', v_rules[v_nth], v_barriers[v_nth]);
            next_look := least(next_look, interval '1 second');
        end if;
    end loop;

    for v_nth in 1 .. coalesce(cardinality(v_walks), 0) loop
        select array_agg(k.key) as keys into v_more from howdah.waiting_keys(v_walks[v_nth], v_after[v_nth], 200) as k (key);
        v_job_types := v_job_types || array_fill(v_walks[v_nth], array[coalesce(cardinality(v_more.keys), 0)]);
        v_keys := v_keys || v_more.keys;
        if cardinality(v_more.keys) = 200 then
            insert into howdah.admission_requests (kind, job_type, name) values ('type', v_walks[v_nth], v_more.keys[200]);
            next_look := '0';
        end if;
    end loop;

    if v_walks is not null then  -- each key once: its slots are counted once
        select array_agg(k.job_type), array_agg(k.key) into v_job_types, v_keys
        from (select distinct * from unnest(v_job_types, v_keys) as k (job_type, key)) as k;
    end if;
    if v_keys is not null then
        if exists (select from howdah.type_limits as r where r.fair and r.job_type = any (v_job_types)) then
            perform howdah.fit_fair_widths(v_job_types, p_narrow => true);  -- before many new keys join the line
        end if;
        select * into v_more from howdah.admit_keys(v_job_types, v_keys);
        admitted := admitted + v_more.admitted;
        next_look := least(next_look, v_more.next_look);
        v_claimed := v_claimed || array_fill(null::timestamptz, array[coalesce(cardinality(v_more.limits), 0)]);
        v_limits := v_limits || v_more.limits;
    end if;
    for v_nth in 1 .. coalesce(cardinality(v_limits), 0) loop
        continue when v_limits[v_nth] = any (v_limits[1 : v_nth - 1]);
        select * into v_more from howdah.admit_limit(v_limits[v_nth], v_claimed[v_nth]);
        admitted := admitted + v_more.admitted;
        next_look := least(next_look, v_more.next_look);
    end loop;
    if admitted > 0 then
        next_look := least(next_look, interval '20 milliseconds');  -- others may follow, and busy workers are not notified
    end if;
    return next;
end;
$$;

-- waiting_keys · the keys of a type for whose slots jobs wait, after p_after, at most p_limit of them
--
-- Reads one entry of jobs_by_key per key, and the states that no job waits in.

create or replace function howdah.waiting_keys(p_job_type text, p_after text, p_limit int) returns setof text
language sql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
    with recursive walk (key, nth) as (
        (select j.key, 1 from howdah.jobs_live as j
         where j.job_type = p_job_type and j.key is not null and j.admission is not null and j.key > p_after
         order by j.key limit 1)
        union all
        select n.key, w.nth + 1 from walk as w cross join lateral (
            select j.key from howdah.jobs_live as j
            where j.job_type = p_job_type and j.key is not null and j.admission is not null and j.key > w.key
            order by j.key limit 1) as n
        where w.nth < p_limit
    )
    select w.key from walk as w;
$$;
