-- release_unique_keys · delete the unique keys of jobs that have ended
--
--   p_keys, p_ids  the keys and their jobs
--
-- A key that is held for a time stays. Locks the rows it deletes (skip locked): it never waits for an enqueue in an open
-- transaction. What it leaves does no harm: see 20_tables/unique_keys.sql. Wakes nobody.

create or replace function howdah.release_unique_keys(p_keys text[], p_ids uuid[]) returns void
language plpgsql volatile
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
    delete from howdah.unique_keys as k
    where k.ctid = any (array(
        select taken.ctid
        from unnest(p_keys, p_ids) as ended (unique_key, job_id)
        cross join lateral (
            select u.ctid from howdah.unique_keys as u
            where u.unique_key = any (array[ended.unique_key]) and u.job_id = ended.job_id and u.holds_until is null
            for update skip locked
        ) as taken));
end;
$$;
