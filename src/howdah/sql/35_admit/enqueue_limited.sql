-- enqueue_limited · → pending: one job that has a key, or whose type has a rule
--
-- Called by enqueue, which has taken its unique key, and by enqueue_limited_now. The job waits for a slot, with a request for `admit`.
--
--   p_admit  true: this transaction ends with this call and its commit does not wait for the disk, so the job may be admitted
--            here, if its key has a free slot, nobody waits for it, and no other session admits
--
-- Holds (lock_space, 6) until the transaction ends where it admits. Locks nothing else. Wakes idle workers that know the type, or
-- as notify_admission.

create or replace function howdah.enqueue_limited(
    p_job_type      text,
    p_data          jsonb,
    p_priority      int,
    p_run_at        timestamptz,
    p_max_attempts  int,
    p_id            uuid,
    p_trace         text,
    p_key           text,
    p_admit         bool         default false,
    p_expires_at    timestamptz  default null,
    p_unique_key    text         default null,
    p_unique_until  text         default null
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
    v_due   bool := coalesce(p_run_at <= howdah.clock(), true);
    v_first record;
    v_most  int;
begin
    perform howdah.refuse_key(p_key);
    select f.admission, f.limited_by into v_first from howdah.first_admission(p_job_type, p_key, v_due) as f;
    if p_admit and v_first.admission = 'slot' and v_first.limited_by is null
       and current_setting('transaction_isolation') = 'read committed'
       and pg_try_advisory_xact_lock(howdah.lock_space(), 6) then
        -- in statements of their own: they see what the last session that admitted has committed
        v_most := coalesce((select r.at_once from howdah.type_limits as r where r.job_type = p_job_type), 1);
        if (select true from howdah.jobs_live as j
            where j.job_type = p_job_type and j.key = p_key and j.key is not null
              and j.admission = 'slot' and j.admission is not null limit 1) is null
           and (select count(*) from (
                select from howdah.jobs_live as j
                where j.job_type = p_job_type and j.key = p_key and j.key is not null
                  and j.admission < 'slot' and j.admission is not null
                limit v_most) as holders) < v_most then
            v_first.admission := 'admitted';
        end if;
    end if;
    insert into howdah.jobs_live (id, job_type, data, priority, run_at, max_attempts, trace, key, limited_by, admission,
                                  arrival, ready_at, expires_at, unique_key, unique_until)
    values (p_id, p_job_type, p_data, p_priority, p_run_at, p_max_attempts, p_trace, p_key, v_first.limited_by,
            v_first.admission, case when v_first.admission is not null then nextval('howdah.arrivals') end,
            case when v_due and coalesce(v_first.admission, 'admitted') = 'admitted' then now() end,
            p_expires_at, p_unique_key, p_unique_until);
    if not v_due then
        perform howdah.notify_due(p_run_at);
    elsif v_first.admission = 'slot' then
        perform howdah.request_look(p_job_type, p_key, null);
    elsif v_first.admission = 'limit' then
        perform howdah.request_look(p_job_type, null, v_first.limited_by);
    else
        perform howdah.wake(array[p_job_type]);
    end if;
end;
$$;

-- enqueue_limited_now · the same, for enqueue_now: a job that is due, never expires and has no unique key
--
-- enqueue_now has the rights of its caller. So this cannot write a unique key that nobody has taken.

create or replace function howdah.enqueue_limited_now(
    p_job_type      text,
    p_data          jsonb,
    p_priority      int,
    p_max_attempts  int,
    p_id            uuid,
    p_trace         text,
    p_key           text,
    p_admit         bool
) returns void
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
as $$
begin
    perform howdah.enqueue_limited(p_job_type, p_data, p_priority, null, p_max_attempts, p_id, p_trace, p_key, p_admit);
end;
$$;
