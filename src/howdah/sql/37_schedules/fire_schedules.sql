-- fire_schedules · → pending: enqueue the jobs of schedules that are due, and move their next firing
--
-- A worker has read the schedules with due_schedules and computed their times. Each is fired only if it is as the worker read it: the
-- same version, and the same next firing. The first worker moves that, so another one finds nothing to do, and there is one job per
-- firing. It is one transaction: a worker that dies leaves the schedule due, with no job.
--
--   p_firings  a JSON array: {"name": …, "version": …, "expected": the next firing as it was read, or null, "times": [the times to
--              enqueue a job for, at most 100], "next": the firing after these, or "infinity"}. With a "problem" that text is
--              stored, and the schedule does not fire until somebody changes it
--   returns    one row per schedule that was moved: how many jobs it enqueued, or why not
--
-- Times must rise from "expected" on and not lie in the future. "next" must be later than these. With `every` it must be no later than
-- one interval from now, else no later than a hundred years. Raises 22023 for others. So no mistake of a worker fires twice.
--
-- If the jobs cannot be enqueued, each schedule is tried alone. One whose job is refused has lost this firing, and `problem` says why.
--
-- Locks the rows of schedules (for update skip locked); else as enqueue_many.

create or replace function howdah.fire_schedules(p_firings jsonb)
returns table (name text, jobs int, skipped bool, problem text)
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
    v_now       timestamptz := howdah.clock();
    v_firing    record;
    v_schedule  howdah.schedules;
    v_time      timestamptz;
    v_jobs      jsonb[] := '{}';
    v_owners    text[] := '{}';  -- of each job: its schedule
    v_times     timestamptz[] := '{}';  -- of each job
    v_ids       uuid[];
    v_id        uuid;
    v_problem   text;
begin
    if jsonb_typeof(p_firings) is distinct from 'array' then
        raise exception using errcode = '22023', message = 'p_firings must be a JSON array of objects';
    end if;
    for v_firing in
        select distinct on (f.name) f.* from jsonb_to_recordset(p_firings) as f (
            name text, version bigint, expected timestamptz, times timestamptz[], next timestamptz, problem text)
        order by f.name
    loop
        select * into v_schedule from howdah.schedules as s
        where s.name = v_firing.name and s.version = v_firing.version and s.next_firing is not distinct from v_firing.expected
          and s.paused_at is null and s.orphaned_at is null
        for update skip locked;
        continue when not found;

        name := v_firing.name;
        jobs := 0;
        skipped := false;
        problem := left(v_firing.problem, 2000);
        if problem is not null then
            update howdah.schedules as s set next_firing = 'infinity', problem = v_firing.problem where s.name = v_firing.name;
            return next;
            continue;
        end if;
        v_firing.times := coalesce(v_firing.times, '{}');
        perform howdah.refuse_firing(v_schedule, v_firing.times, v_firing.next, v_now);
        if v_schedule.overlap = 'skip' and v_firing.times <> '{}' then
            v_time := v_firing.times[cardinality(v_firing.times)];
            skipped := exists (select from howdah.jobs_live as j where j.id = any (array[v_schedule.last_job_id]));
            v_firing.times := case when skipped then '{}' else array[v_time] end;
        end if;
        update howdah.schedules as s
        set next_firing = v_firing.next, last_skipped = case when skipped then v_time else s.last_skipped end, problem = null
        where s.name = v_firing.name;
        foreach v_time in array v_firing.times loop
            v_jobs := v_jobs || howdah.scheduled_job(v_schedule, v_time);
            v_owners := v_owners || v_firing.name;
            v_times := v_times || v_time;
        end loop;
        jobs := cardinality(v_firing.times);
        return next;
    end loop;
    if v_jobs = '{}' then
        return;
    end if;

    begin
        v_ids := array(select howdah.enqueue_many(to_jsonb(v_jobs)));
    exception when data_exception or integrity_constraint_violation or sqlstate 'HW001' or sqlstate 'HW002' or sqlstate 'HW007' then
        v_ids := null;
    end;
    for v_nth in 1 .. cardinality(v_jobs) loop
        v_problem := null;
        v_id := v_ids[v_nth];
        if v_id is null then
            begin
                v_id := (select j from howdah.enqueue_many(jsonb_build_array(v_jobs[v_nth])) as j);
            exception when data_exception or integrity_constraint_violation or sqlstate 'HW001' or sqlstate 'HW002' or sqlstate 'HW007' then
                v_problem := left(format('the job for %s was refused: %s', v_times[v_nth], sqlerrm), 2000);
            end;
        end if;
        update howdah.schedules as s
        set last_firing = v_times[v_nth], last_job_id = coalesce(v_id, s.last_job_id), problem = v_problem
        where s.name = v_owners[v_nth];
        if v_problem is not null then
            name := v_owners[v_nth];
            jobs := 0;
            skipped := false;
            problem := v_problem;
            return next;
        end if;
    end loop;
end;
$$;

-- refuse_firing · raise 22023 for times of a firing that cannot be right

create or replace function howdah.refuse_firing(
    p_schedule howdah.schedules, p_times timestamptz[], p_next timestamptz, p_now timestamptz) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
    v_last timestamptz := coalesce(p_schedule.next_firing - interval '1 microsecond', p_schedule.counts_from);
    v_time timestamptz;
begin
    if cardinality(p_times) > 100 then
        raise exception using errcode = '22023', message = format('the schedule %s has %s times to fire; at most 100 are allowed', p_schedule.name, cardinality(p_times));
    end if;
    foreach v_time in array p_times loop
        if (v_time > v_last and v_time <= p_now) is not true then
            raise exception using errcode = '22023',
                message = format('the schedule %s cannot fire for %s: that is in the future, or before a firing that it has done', p_schedule.name, v_time);
        end if;
        v_last := v_time;
    end loop;
    v_last := greatest(v_last, p_schedule.next_firing);
    if (p_next > v_last and (p_next = 'infinity' or p_next <= p_now + coalesce(p_schedule.every, interval '100 years'))) is not true
       or (p_next = 'infinity' and p_schedule.every is not null) then
        raise exception using errcode = '22023',
            message = format('the next firing of the schedule %s cannot be %s', p_schedule.name, coalesce(p_next::text, 'null')),
            hint = 'It must be later than the firings before, and with `every` no later than one interval from now.';
    end if;
end;
$$;
