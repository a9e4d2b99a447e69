-- complete_in_transaction · claimed, running → completed
--
-- As complete, for one attempt, as the last statement of a transaction that has other effects, too: they are committed together or not
-- at all. A stale lease aborts the transaction (SQLSTATE HW010).
--
--   p_completion  {"worker_id", "id", "attempt"}, the lease; {"result"}; {"began_ago"}, seconds since the handler began;
--                 {"transaction"}, the value to which this transaction has set howdah.transaction before. That setting ends with a
--                 transaction, so a client in autocommit mode is found out
--   returns       'completed'. If nothing was written: 'no transaction'; 'again', if this attempt has completed the job before; 'other
--                 database', if neither the job nor the worker is known here
--
-- Until the transaction ends, the row is locked and the slots of the job are on their way to others. So the session may be idle
-- for 15 seconds at most. Locks and wakes as finish does.

create or replace function howdah.complete_in_transaction(p_completion jsonb) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
set intervalstyle = 'postgres'
as $$
declare
    v_worker_id  text := p_completion ->> 'worker_id';
    v_id         uuid := p_completion ->> 'id';
    v_attempt    int  := p_completion ->> 'attempt';
    v_offset     text := coalesce(current_setting('howdah.clock_offset', true), '');
    v_moved      uuid;
    v_job        howdah.jobs;
begin
    if current_setting('howdah.transaction', true) is distinct from p_completion ->> 'transaction' then
        return 'no transaction';
    end if;
    if current_setting('idle_in_transaction_session_timeout')::interval not between '1 millisecond' and '15 seconds' then
        perform set_config('idle_in_transaction_session_timeout', '15s', true);
    end if;
    -- it may be long ago that the transaction began, and with it now()
    perform set_config('howdah.clock_offset',
                       (clock_timestamp() - now() + coalesce(nullif(v_offset, ''), '0')::interval)::text, true);
    v_moved := (select f from howdah.finish('completed', v_worker_id, array[v_id], array[v_attempt], null, null,
                                            array[p_completion -> 'result'],
                                            array[make_interval(secs => (p_completion ->> 'began_ago')::float8)]) as f);
    perform set_config('howdah.clock_offset', v_offset, true);
    if v_moved is not null then
        return 'completed';
    end if;

    select * into v_job from howdah.jobs_by_id(array[v_id]);
    if v_job.status = 'completed' and v_job.worker_id = v_worker_id and v_job.attempts = v_attempt then
        return 'again';
    elsif v_job.id is null and not exists (select from howdah.workers as w where w.id = v_worker_id) then
        return 'other database';
    end if;
    raise exception using errcode = 'HW010',
        message = format('job %s is no longer this handler''s: it was cancelled or given to another worker', v_id);
end;
$$;

-- completion_state · what became of a completion that was sent in a transaction of which the outcome is not known
--
--   p_worker_id, p_id, p_attempt  the lease
--   returns  'completed'; 'open': the transaction has not ended; 'held': it was rolled back, and the lease is valid; 'lost'
--
-- Locks the row for a moment (skip locked). Wakes nobody.

create or replace function howdah.completion_state(p_worker_id text, p_id uuid, p_attempt int) returns text
language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp
-- pinned plans: see jobs.sql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
    perform from howdah.jobs_live as j
    where j.id = any (array[p_id]) and j.worker_id = p_worker_id and j.attempts = p_attempt
    for key share skip locked;
    if found then
        return 'held';
    end if;
    perform from howdah.jobs_live as j
    where j.id = any (array[p_id]) and j.worker_id = p_worker_id and j.attempts = p_attempt;
    if found then
        return 'open';
    end if;
    perform from howdah.jobs_finished as j
    where j.id = any (array[p_id]) and j.worker_id = p_worker_id and j.attempts = p_attempt and j.status = 'completed';
    return case when found then 'completed' else 'lost' end;
end;
$$;
