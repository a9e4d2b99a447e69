-- run_schedule_now · enqueue a job of a schedule at once, whatever its times
--
-- Works for a paused or orphaned schedule too, and does not look at `overlap`. The time of this firing is now. The next firing stays.
--
--   returns  the id of the job
--
-- Raises 22023 if there is no such schedule. Locks one row of schedules; else as enqueue_many.

create or replace function howdah.run_schedule_now(p_name text) returns uuid
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
declare
    v_schedule howdah.schedules;
    v_now      timestamptz := date_trunc('milliseconds', howdah.clock());
    v_id       uuid;
begin
    select * into v_schedule from howdah.schedules as s where s.name = p_name for update;
    if not found then
        perform howdah.refuse_unknown_schedule(p_name);
    end if;
    v_id := (select j from howdah.enqueue_many(jsonb_build_array(howdah.scheduled_job(v_schedule, v_now))) as j);
    update howdah.schedules as s set last_firing = v_now, last_job_id = v_id, problem = null where s.name = p_name;
    return v_id;
end;
$$;

-- scheduled_job · the job of one firing, as enqueue_many takes it

create or replace function howdah.scheduled_job(p_schedule howdah.schedules, p_for timestamptz) returns jsonb
language sql volatile
begin atomic
    select (p_schedule).options || jsonb_build_object(
        'id', howdah.firing_id(p_for), 'job_type', (p_schedule).job_type, 'data', (p_schedule).data);
end;
