-- key_counts · for each key of a type, how many jobs hold a slot and how many wait for one
--
-- Reads jobs_by_key from key to key, in the order of the keys, and counts at most p_cap jobs of a key. After p_keys keys, or ten
-- times p_cap jobs, it goes on with the keys that are most frequent in a sample of jobs_live, at most 100 of them.
--
--   returns  holding: jobs that hold a slot; waiting: jobs that wait for one; more: there are more of these
--            unread: there may be keys that were not read. Both may be 0: the jobs of the key wait for their time
--
-- Locks nothing. Under a long transaction it also reads the dead entries of the index, so give the statement a timeout.

create or replace function howdah.key_counts(p_job_type text, p_cap int default 10000, p_keys int default 2000)
returns table (key text, holding bigint, waiting bigint, more bool, unread bool)
language plpgsql stable
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_left     bigint := 10 * p_cap::bigint;
    v_read     bigint;
    v_keys     int := 0;
    v_sampled  text[];
    v_share    real := least(100, 100.0 * 200 * 8192 / (pg_relation_size('howdah.jobs_live') + 1));  -- about 200 pages
begin
    key := '';
    unread := false;
    loop
        if unread then
            key := v_sampled[1];
            v_sampled := v_sampled[2 :];
        else
            key := (select j.key from howdah.jobs_live as j
                    where j.job_type = p_job_type and j.key > key_counts.key and j.key is not null and j.admission is not null
                    order by j.job_type, j.key, j.admission, ~j.priority, j.arrival limit 1);
        end if;
        exit when key is null;
        select count(*) into holding from (
            select from howdah.jobs_live as j
            where j.job_type = p_job_type and j.key = key_counts.key and j.key is not null
              and j.admission < 'slot' and j.admission is not null
            limit p_cap) as holders;
        -- a job that waits for a slot and has a worker runs in the slot of another one
        select count(*) filter (where w.worker_id is null), count(*) into waiting, v_read from (
            select j.worker_id from howdah.jobs_live as j
            where j.job_type = p_job_type and j.key = key_counts.key and j.key is not null
              and j.admission = 'slot' and j.admission is not null
            limit p_cap) as w;
        more := v_read >= p_cap;
        v_keys := v_keys + 1;
        v_left := v_left - holding - v_read;
        if not unread and (v_keys >= p_keys or v_left <= 0) then
            unread := true;
            v_left := 10 * p_cap::bigint;
            v_sampled := array(
                select s.key from (
                    select j.key from howdah.jobs_live as j tablesample system (v_share) repeatable (1)
                    where j.job_type = p_job_type and j.key > key_counts.key and j.admission = 'slot') as s
                group by s.key order by count(*) desc limit 100);
        end if;
        return next;
        exit when v_left <= 0;
    end loop;
end;
$$;
