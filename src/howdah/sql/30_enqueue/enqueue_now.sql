-- enqueue_now · → pending, in two commits when a worker is idle
--
-- Enqueue for a caller without a transaction of its own. When a worker is idle there are two commits. After
-- the first, which does not wait for the disk, the job exists and the worker is notified. After the second it is on
-- disk. The caller gets its answer after the second, so an acknowledged job is safe; the worker has already begun.
--
--   p_…   see enqueue.sql. p_expires_at is by default 'infinity': a client that knows the type need not ask for its expiry
--
-- Locks nothing. Wakes idle workers that know the type. After an error of class 57 (a timeout, an operator)
-- the job may exist, as after a lost connection; after any other error it does not.

create or replace procedure howdah.enqueue_now(
    p_job_type      text,
    p_data          jsonb,
    p_priority      int,
    p_run_at        timestamptz,
    p_max_attempts  int,
    p_id            uuid,
    p_delay         interval,
    p_trace         text         default null,
    p_expires_at    timestamptz  default 'infinity',
    p_expires       interval     default null,
    p_key           text         default null
)
language plpgsql
as $$
-- A procedure that commits can have neither `set search_path` nor `security definer`. So every name is
-- qualified, and functions that it calls have the rights it needs.
declare
    v_at_once bool := p_run_at is null and p_delay is null;
    v_wakes   bool := v_at_once and howdah.has_idle_worker();
    v_usual   bool := v_at_once and p_expires is null and coalesce(p_expires_at operator(pg_catalog.=) 'infinity', true)
                      and howdah.is_fresh_id(p_id);
begin
    if v_usual and (p_priority is null or p_max_attempts is null or p_expires_at is null) then
        select coalesce(p_priority, d.priority), coalesce(p_max_attempts, d.max_attempts),
               case when p_expires_at is null then d.expires end
        into p_priority, p_max_attempts, p_expires from howdah.type_defaults(p_job_type) as d;
        v_usual := p_expires is null;
    end if;
    -- A usual job is inserted here, as enqueue would do: on an idle system that call is a tenth of the time. Its
    -- id was made in about the last minute, so it is not searched among the ended jobs: that takes as long as
    -- the INSERT, and clients make a new id for every call.
    if v_usual then
        if p_max_attempts operator(pg_catalog.>) 3 then
            perform howdah.refuse_max_attempts(p_max_attempts);
        end if;
        -- one statement: to start another one takes as long as to find that no rule limits the type
        insert into howdah.jobs_live (id, job_type, data, priority, max_attempts, trace)
        select p_id, p_job_type, p_data, p_priority, p_max_attempts, p_trace
        where p_key is null
          and not exists (select from howdah.type_limits as r where r.job_type operator(pg_catalog.=) p_job_type);
        if not found then
            -- the job is admitted here only when the commit does not wait for the disk
            perform howdah.enqueue_limited_now(p_job_type, p_data, p_priority, p_max_attempts, p_id, p_trace, p_key, v_wakes);
            if v_wakes then
                perform howdah.async_commit();
            end if;
        elsif v_wakes then
            perform howdah.async_commit(), howdah.notify_workers(array[p_job_type]);
        end if;
    else
        if v_wakes then
            perform howdah.async_commit();
        end if;
        perform howdah.enqueue(p_job_type, p_data, p_priority, p_run_at, p_max_attempts, p_id, p_delay, p_trace,
                               p_expires_at, p_expires, p_key => p_key);
    end if;
    if v_wakes then
        commit;
        perform howdah.wait_for_disk();
    end if;
end;
$$;
