-- signal · send a signal to a job that waits for it, or will
--
-- Stores the signal; a wait for this name takes it. If the job sleeps until it comes, the job joins the line at once. Commits with the
-- transaction of the caller.
--
--   select howdah.signal('0199…', 'approved', '{"by": "ann"}');
--
--   p_data   any JSON, at most max_payload_bytes
--   returns  whether the job waited for it and goes on; false: it is kept for the job
--
-- Raises HW008 for a job that has ended and HW009 for an id that no job has.
--
-- Locks the row of the job (for key share, see suspend): until the transaction ends, the job cannot end or be put to sleep. So keep the
-- transaction short. Wakes as run_now does.

create or replace function howdah.signal(p_id uuid, p_name text, p_data jsonb default 'null') returns bool
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
    v_bytes   int := octet_length(p_data::text);
    v_limit   int := howdah.option('max_payload_bytes');
    v_status  text;
    v_found   bool;
begin
    if p_id is null then
        raise exception using errcode = '22023', message = 'p_id must be the id of a job';
    end if;
    if p_name is null or length(p_name) not between 1 and 200 or p_name ~ '[[:cntrl:]]' then
        raise exception using errcode = '22023',
            message = 'the name of a signal must have 1 to 200 characters, none of them a control character';
    end if;
    if v_bytes > v_limit then
        raise exception using errcode = 'HW001',
            message = format('the data of the signal has %s bytes; the limit is %s', v_bytes, v_limit),
            hint = 'Store the data elsewhere and send a reference to it, or raise the option max_payload_bytes.';
    end if;

    perform from howdah.jobs_live as j where j.id = any (array[p_id]) for key share;
    if not found then
        select j.status into v_status from howdah.jobs_by_id(array[p_id]) as j;
        v_found := found;
        raise exception using errcode = case when v_found then 'HW008' else 'HW009' end,
            message = case when v_found then format('job %s has ended as %s, so it cannot get the signal %s', p_id, v_status, p_name)
                           else format('there is no job %s: the id is wrong, or the job was never committed, or it was pruned after its '
                                       'retention', p_id) end;
    end if;
    insert into howdah.job_signals (job_id, name, data, sent_at) values (p_id, p_name, coalesce(p_data, 'null'), howdah.clock());

    -- a statement of its own: it sees the job as it was when its lock was granted, or later
    if not exists (
        select from howdah.jobs_live as j
        where j.id = any (array[p_id]) and j.worker_id is null and j.ready_at is null
          and exists (select from howdah.job_steps as s
                      where s.job_id = j.id and s.kind = 'signal' and s.name = p_name and s.ended_at is null)
          and exists (select from howdah.job_steps as s
                      where s.job_id = j.id and s.kind in ('sleep', 'signal') and s.ended_at is null and s.until = j.run_at)
    ) then
        -- in line: a claim skips it while we have it locked, and must search again
        perform howdah.wake(array[j.job_type::text]) from howdah.jobs_live as j
        where j.id = any (array[p_id]) and j.worker_id is null and j.ready_at is not null;
        return false;
    end if;
    -- of a run: it waits for the slot of its key, and is due when it gets it
    update howdah.jobs_live as j set run_at = howdah.clock()
    where j.id = any (array[p_id]) and j.worker_id is null and j.admission in ('slot', 'limit');
    return found or exists (select from howdah.join_line(array[p_id]));
end;
$$;
