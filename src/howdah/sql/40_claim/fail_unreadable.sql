-- fail_unreadable · pending → failed
--
-- Fails jobs that no client can read: their payload is too large as text, or damaged on disk. One such job makes
-- every claim fail that contains it, so a worker whose claim was refused calls this and claims again.
--
--   p_worker_id   who asks; its name is in the error
--   p_job_types   the types whose lines are read
--   p_depth       how many jobs of each line, from its beginning
--   returns       the jobs that were failed, and why each could not be read
--
-- The payload is replaced by an empty one: a list of jobs would fail on it too. Locks the rows it fails
-- (skip locked). Wakes those who follow these jobs.

create or replace function howdah.fail_unreadable(p_worker_id text, p_job_types text[], p_depth int default 10000)
returns table (id uuid, error text)
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
    v_type    text;
    v_job     record;
    v_attempt int;
begin
    foreach v_type in array p_job_types loop
        for v_job in
            select j.id as job_id, j.ctid from howdah.jobs_live as j
            where j.job_type = v_type and j.held_by is null and j.worker_id is null and j.ready_at is not null
            order by ~j.priority, j.ready_at, j.id
            limit p_depth
        loop
            begin
                perform convert_to(j.data::text, 'UTF8'), convert_to(j.trace, 'UTF8') from howdah.jobs_live as j
                where j.ctid = v_job.ctid;
                continue;
            exception when others then
                id := v_job.job_id;
                error := format('its payload cannot be read: %s (SQLSTATE %s)', sqlerrm, sqlstate);
            end;
            update howdah.jobs_live as j
            set data = '{}', trace = null, status = 'claimed', worker_id = p_worker_id, claimed_at = howdah.clock(),
                attempts = least(j.attempts, 2147483646) + 1
            where j.ctid = any (array(
                select l.ctid from howdah.jobs_live as l
                where l.id = any (array[v_job.job_id]) and coalesce(l.worker_id is null, false)
                for update skip locked))
            returning j.attempts into v_attempt;
            if found then
                perform howdah.finish('failed', p_worker_id, array[id], array[v_attempt], array[error]);
                return next;
            end if;
        end loop;
    end loop;
end;
$$;
