-- enqueue · → pending
--
-- Adds one job. It is in line at once, or waits until `p_run_at` (an instant) or for
-- `p_delay` (by the server's clock, not the client's).
--
--   p_priority, p_max_attempts   null: as registered for the type; 100 and 3 where nothing is registered
--   p_expires_at  no attempt begins after it: the job is cancelled if it has not started by then. 'infinity': never
--   p_expires     the same, so long after the job is due. Both null: as registered for the type
--   p_unique_key    there is one job of its type with this key at most, until it has ended
--   p_unique_until  'started': until its first attempt has begun. 'ended' or null: until it has ended
--   p_unique_for    so long from now, whatever becomes of the job
--   p_on_conflict   what is done with the job that has the key: see meet_existing.sql
--   p_id     null: made here. A caller that makes it knows it before the commit. The id of a job that
--            is kept is refused: live (23505) or ended (HW002)
--   p_trace  a W3C traceparent, so that the run joins the trace of the request
--   p_key    the concurrency key: what must not run at the same time, or in another order; see 35_admit
--   returns  the job's id; the id of the job that has the unique key, if there is one
--
-- Locks nothing, or the unique key: see take_unique_key.sql. Wakes idle workers that know the type, or notifies them that a job waits, when the transaction commits.

create or replace function howdah.enqueue(
    p_job_type      text,
    p_data          jsonb        default '{}',
    p_priority      int          default null,
    p_run_at        timestamptz  default null,
    p_max_attempts  int          default null,
    p_id            uuid         default null,
    p_delay         interval     default null,
    p_trace         text         default null,
    p_expires_at    timestamptz  default null,
    p_expires       interval     default null,
    p_unique_key    text         default null,
    p_unique_until  text         default null,
    p_unique_for    interval     default null,
    p_on_conflict   text         default 'existing',
    p_key           text         default null
) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id     uuid        := p_id;
    v_run_at timestamptz := p_run_at;
    v_ready  bool        := true;
    v_holder uuid;
    v_limited bool;
begin
    -- one step per option: a usual job skips the expressions that it does not need
    if p_id is null then
        v_id := howdah.new_id();
    end if;
    if p_delay is not null then
        v_run_at := howdah.clock() + p_delay;
    end if;
    if v_run_at is not null then
        v_ready := v_run_at <= howdah.clock();
    end if;
    if p_expires_at is null and p_expires is null then
        select coalesce(p_priority, d.priority), coalesce(p_max_attempts, d.max_attempts), d.expires, d.limited
        into p_priority, p_max_attempts, p_expires, v_limited from howdah.type_defaults(p_job_type) as d;
    elsif p_priority is null or p_max_attempts is null then
        select coalesce(p_priority, d.priority), coalesce(p_max_attempts, d.max_attempts), d.limited
        into p_priority, p_max_attempts, v_limited from howdah.type_defaults(p_job_type) as d;
    else
        v_limited := exists (select from howdah.type_limits as r where r.job_type = p_job_type);
    end if;
    if p_expires_at is not null or p_expires is not null then
        p_expires_at := howdah.expiry(p_expires_at, p_expires, v_run_at);
    end if;
    if p_max_attempts > 3 then  -- the least that the limit can be
        perform howdah.refuse_max_attempts(p_max_attempts);
    end if;
    if p_unique_key is not null then
        perform howdah.refuse_unique_options(p_unique_key, p_unique_until, p_unique_for, p_on_conflict);
        p_unique_until := case when p_unique_for is not null then 'time' else coalesce(p_unique_until, 'ended') end;
        v_holder := howdah.take_unique_key(p_job_type, p_unique_key, v_id, howdah.clock() + p_unique_for,
                                           p_on_conflict in ('replace', 'debounce'));
        if v_holder is not null then
            perform howdah.meet_existing(p_on_conflict, v_holder, p_job_type, p_unique_key, p_data, v_run_at, p_expires_at);
            return v_holder;
        end if;
    else
        p_unique_until := null;
    end if;
    if v_limited or p_key is not null then
        perform howdah.enqueue_limited(p_job_type, p_data, p_priority, v_run_at, p_max_attempts, v_id, p_trace, p_key, false,
                                       p_expires_at, p_unique_key, p_unique_until);
        if p_id is not null then
            perform howdah.refuse_used_ids(array[p_id]);
        end if;
        return v_id;
    end if;
    insert into howdah.jobs_live (id, job_type, data, priority, run_at, max_attempts, trace, ready_at, expires_at,
                                  unique_key, unique_until)
    values (v_id, p_job_type, p_data, p_priority, v_run_at, p_max_attempts, p_trace, case when v_ready then now() end,
            p_expires_at, p_unique_key, p_unique_until);
    if p_id is not null then
        perform howdah.refuse_used_ids(array[p_id]);
    end if;
    if v_ready then
        perform howdah.wake(array[p_job_type]);
    else
        perform howdah.notify_due(v_run_at);
    end if;
    return v_id;
end;
$$;
