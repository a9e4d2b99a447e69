-- fit_fair_widths · how many jobs of one key stand in line or are at work, for types whose keys are fair
--
-- A job joins the line behind all others. So a key whose jobs stand in line in small numbers does not make others wait. This
-- number, the width, is at_once in type_limits. All keys of a type have the same one. It is as small as all places of the workers allow:
--
--   one key waits      it can use all places
--   n keys wait        together they can use all places twice: so half of them may run out of jobs before the next call
--
-- A width between what is needed and 1.5 times that stays as it is, so it does not go up and down with the workers' speed. A wider one
-- lets in jobs of the keys that wait. After a narrower one hand_over counts, until no key has too many.
--
--   p_job_types  these types; null: all
--   p_narrow     true: only make widths smaller, as soon as many keys wait. It counts up to 200 keys
--
-- Locks the rows of type_limits that it changes (skip locked). Wakes as notify_admission.

create or replace function howdah.fit_fair_widths(p_job_types text[] default null, p_narrow bool default false) returns void
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
    v_type    howdah.type_limits;
    v_places  int;
    v_most    int;  -- with so many keys the width cannot become smaller
    v_keys    int;
    v_needed  int;
    v_width   int;
begin
    for v_type in
        select t.* from howdah.type_limits as t
        where t.fair and (p_job_types is null or t.job_type = any (p_job_types))
    loop
        v_places := howdah.places(v_type.job_type);
        v_most := least(2 * v_places, case when p_narrow then 200 end);
        continue when p_narrow and v_type.at_once <= ceil(1.5 * ceil(v_places * 2.0 / v_most));
        v_keys := howdah.count_waiting_keys(v_type.job_type, v_most);
        v_needed := ceil(v_places * least(1, 2.0 / greatest(v_keys, 1)));
        if v_type.at_once < v_needed and not p_narrow or v_type.at_once > ceil(1.5 * v_needed) then
            v_width := ceil(1.2 * v_needed);
            update howdah.type_limits as t set at_once = v_width, counted = t.counted or v_width < t.at_once
            where t.ctid = any (array(select k.ctid from howdah.type_limits as k
                                      where k.job_type = v_type.job_type and k.fair for update skip locked));
            if found and v_width > v_type.at_once and v_keys > 0 then
                insert into howdah.admission_requests (kind, job_type, name) values ('type', v_type.job_type, '');
                perform howdah.notify_admission();
            end if;
        elsif v_type.counted and not p_narrow and howdah.has_wide_key(v_type.job_type, v_type.at_once) is null then
            update howdah.type_limits as t set counted = false
            where t.ctid = any (array(select k.ctid from howdah.type_limits as k
                                      where k.job_type = v_type.job_type and k.fair and k.at_once = v_type.at_once
                                      for update skip locked));
        end if;
    end loop;
end;
$$;

-- places · how many jobs of a type all live workers need to be busy all the time
--
-- Those in their slots, those that they have claimed ahead, and as many that are on the way: in line, or ended and not yet written.
-- 100 if no worker is known. Foreign workers that never beat are not known.

create or replace function howdah.places(p_job_type text) returns int
language sql stable
set search_path = pg_catalog, pg_temp
as $$
    with workers as (
        -- what a worker writes about itself may be anything
        select case when jsonb_typeof(w.info -> 'slots') = 'number' then (w.info ->> 'slots')::numeric end as slots,
               case when jsonb_typeof(w.info -> 'threads') = 'number' and w.info -> 'thread_types' ? p_job_type
                    then (w.info ->> 'threads')::numeric end as threads,
               case when jsonb_typeof(w.info -> 'ahead') = 'number' then (w.info ->> 'ahead')::numeric else 0 end as ahead
        from howdah.workers as w
        where w.given_up_at is null and w.beat_at >= howdah.clock() - w.silent_after
          and w.info -> 'job_types' ? p_job_type and w.info -> 'leaving' is distinct from 'true'
    )
    select least(coalesce(sum(greatest(least(w.slots, w.threads), 1) + 2 * greatest(w.ahead, 0)), 100), 100000)::int
    from workers as w;
$$;

-- count_waiting_keys · for how many keys of a type jobs wait for a slot; at most p_most
--
-- From the last job of a key to the first: the dead entries of an index are mostly those of the first ones.

create or replace function howdah.count_waiting_keys(p_job_type text, p_most int) returns int
language sql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
    with recursive walk (key, nth) as (
        (select j.key, 1 from howdah.jobs_live as j
         where j.job_type = p_job_type and j.key is not null and j.admission = 'slot' and j.admission is not null
         order by j.key desc limit 1)
        union all
        select n.key, w.nth + 1 from walk as w cross join lateral (
            select j.key from howdah.jobs_live as j
            where j.job_type = p_job_type and j.key is not null and j.admission = 'slot' and j.admission is not null
              and j.key < w.key
            order by j.key desc limit 1) as n
        where w.nth < p_most
    )
    select count(*)::int from walk as w;
$$;

-- has_wide_key · whether some key has more than p_width jobs in line or at work; null: none has

create or replace function howdah.has_wide_key(p_job_type text, p_width int) returns bool
language sql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
    select true from howdah.waiting_keys(p_job_type, '', 10000) as k (key)
    where (select count(*) from (
               select from howdah.jobs_live as j
               where j.job_type = p_job_type and j.key = k.key and j.key is not null
                 and j.admission < 'slot' and j.admission is not null
               limit p_width + 1) as holders) > p_width
    limit 1;
$$;
