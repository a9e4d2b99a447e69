-- enqueue · → pending
--
-- Hands one job over. It stands in line at once, or waits for `p_run_at` (an instant) or
-- `p_delay` (counted by the server's clock, whatever the client's says).
--
--   p_priority, p_max_attempts   null: as the type's workers have registered it; 100 and 3 where none has
--   p_id     made by the caller, who then knows it before the commit; else made here. The id of a job that
--            is kept is refused, live (23505) or ended (HW002)
--   p_trace  a W3C traceparent, so that the run joins the trace of the request
--   returns  the job's id
--
-- Locks nothing. Wakes idle workers that know the type, or tells them that a job waits, when the transaction commits.

create or replace function howdah.enqueue(
    p_job_type      text,
    p_data          jsonb        default '{}',
    p_priority      int          default null,
    p_run_at        timestamptz  default null,
    p_max_attempts  int          default null,
    p_id            uuid         default null,
    p_delay         interval     default null,
    p_trace         text         default null
) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_id     uuid        := p_id;
    v_run_at timestamptz := p_run_at;
    v_ready  bool        := true;
begin
    -- step by step: what a usual job does not need is not even made ready
    if p_id is null then
        v_id := howdah.new_id();
    end if;
    if p_delay is not null then
        v_run_at := howdah.clock() + p_delay;
    end if;
    if v_run_at is not null then
        v_ready := v_run_at <= howdah.clock();
    end if;
    if p_priority is null or p_max_attempts is null then
        select coalesce(p_priority, d.priority), coalesce(p_max_attempts, d.max_attempts)
        into p_priority, p_max_attempts from howdah.type_defaults(p_job_type) as d;
    end if;
    if p_max_attempts > 3 then  -- the least that the limit can be
        perform howdah.refuse_max_attempts(p_max_attempts);
    end if;
    insert into howdah.jobs_live (id, job_type, data, priority, run_at, max_attempts, trace, ready_at)
    values (v_id, p_job_type, p_data, p_priority, v_run_at, p_max_attempts, p_trace, case when v_ready then now() end);
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
