-- Three roles, each with the rights that it needs and no others.
-- Run as the owner of the schema `howdah`; make the roles first:
--
--   create role howdah_producer; create role howdah_worker; create role howdah_observer;

revoke all on schema howdah from howdah_producer, howdah_worker, howdah_observer;
revoke all on all tables in schema howdah from howdah_producer, howdah_worker, howdah_observer;
revoke all on all routines in schema howdah from howdah_producer, howdah_worker, howdah_observer;
revoke all on all sequences in schema howdah from howdah_producer, howdah_worker, howdah_observer;

grant usage on schema howdah to howdah_producer, howdah_worker, howdah_observer;

-- Everyone may see which version is installed.
grant select on howdah.installed to howdah_producer, howdah_worker, howdah_observer;

-- And which job types workers have registered, with their parameters.
grant select on howdah.job_types to howdah_producer, howdah_worker, howdah_observer;

-- And which of them have a rule that limits their jobs.
grant select (job_type) on howdah.type_limits to howdah_producer;

-- A producer enqueues, by function, by plain INSERT or by COPY, signals jobs by their ids, and reads nothing back.
grant execute on function
    howdah.enqueue(text, jsonb, int, timestamptz, int, uuid, interval, text, timestamptz, interval,
                   text, text, interval, text, text),
    howdah.enqueue_limited_now(text, jsonb, int, int, uuid, text, text, bool),
    howdah.limit_copied(uuid, uuid, text[]),
    howdah.enqueue_many(jsonb), howdah.payload_key(jsonb),
    howdah.new_id(), howdah.clock(), howdah.wake(text[]), howdah.lock_space(), howdah.option(text),
    howdah.has_idle_worker(), howdah.notify_workers(text[]), howdah.async_commit(), howdah.wait_for_disk(),
    howdah.is_fresh_id(uuid), howdah.payload_fits(jsonb), howdah.refuse_max_attempts(int),
    howdah.signal(uuid, text, jsonb), howdah.refuse_used_ids(uuid, uuid), howdah.refuse_used_ids(uuid[]), howdah.type_defaults(text)
    to howdah_producer, howdah_worker;
grant execute on procedure
    howdah.enqueue_now(text, jsonb, int, timestamptz, int, uuid, interval, text, timestamptz, interval, text)
    to howdah_producer, howdah_worker;
grant usage on sequence howdah.id_counter to howdah_producer, howdah_worker;
grant insert (id, job_type, priority, data, max_attempts, run_at, expires_at, trace, unique_key, unique_until, key)
    on howdah.jobs to howdah_producer, howdah_worker;
-- A row written directly to jobs_live is in line at once: no trigger checks whether it is due, or has a key.
grant insert (id, job_type, priority, data, max_attempts, trace)
    on howdah.jobs_live to howdah_producer, howdah_worker;

-- An observer reads everything and changes nothing.
grant select on all tables in schema howdah to howdah_observer, howdah_worker;
grant execute on function
    howdah.clock(), howdah.today(), howdah.option(text), howdah.fingerprint(text),
    howdah.waits_for(text, text, timestamptz, int, text),
    howdah.key_counts(text, int, int), howdah.limited_counts(int),
    howdah.measured(timestamptz), howdah.measured_by_minute(timestamptz),
    howdah.lane_counts(int, int, text), howdah.held_counts(int), howdah.scheduled_counts(int),
    howdah.jobs_ahead(text[], int, timestamptz, uuid, int), howdah.workers_now(int), howdah.jobs_by_id(uuid[]), howdah.recent_failures(text, int, int),
    howdah.retrying_failures(text, int), howdah.scheduled_for(uuid), howdah.limit_counts(int, int, text), howdah.slot_wait_counts(int, int)
    to howdah_observer, howdah_worker;

-- A worker claims, runs and settles jobs, by the verbs or by plain UPDATE. It is also the
-- role of those who cancel, requeue, pause and resume.
grant execute on all routines in schema howdah to howdah_worker;
revoke execute on function
    howdah.finish(text, text, uuid[], int[], text[], text[], jsonb[], interval[], bool, bool, text[]),
    howdah.lock_best(int, howdah.line_range[], timestamptz), howdah.peek_best(int, howdah.line_range[], timestamptz),
    howdah.enter_held(text[], interval),
    howdah.take_unique_key(text, text, uuid, timestamptz, bool), howdah.take_unique_keys(jsonb),
    howdah.take_inserted_key(text, text, uuid, text), howdah.take_requeued_keys(uuid[]),
    howdah.holds_unique_key(howdah.unique_keys, bool), howdah.release_unique_keys(text[], uuid[]),
    howdah.meet_existing(text, uuid, text, text, jsonb, timestamptz, timestamptz), howdah.meet_holders(jsonb),
    howdah.debounce(uuid, timestamptz, timestamptz),
    howdah.forget_unique_keys(),
    howdah.enqueue_limited(text, jsonb, int, timestamptz, int, uuid, text, text, bool, timestamptz, text, text),
    howdah.hand_over(howdah.freed_slot[], text, text[], bool), howdah.limit_new(uuid[]),
    howdah.admit_keys(text[], text[]), howdah.admit_limit(text, timestamptz), howdah.apply_type_limit(text, bool),
    howdah.fit_fair_widths(text[], bool), howdah.request_all_looks(), howdah.compact_limit_history(),
    howdah.take_back_runs(text[], text[], bigint[]), howdah.join_line(uuid[]), howdah.forget_steps(),
    howdah.scheduled_job(howdah.schedules, timestamptz),
    howdah.refuse_firing(howdah.schedules, timestamptz[], timestamptz, timestamptz)
    from howdah_worker;
grant update (status, progress, current_stage, worker_id, claimed_at, started_at, completed_at,
              last_error, run_at, priority, expires_at)
    on howdah.jobs to howdah_worker;
