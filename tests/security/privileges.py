"""Privileges: the expected rights of each role, for every object in the schema.

`test_privileges.py` compares this with the catalog and tries it. A function, table, sequence or
type that is missing here fails that test: add it here with the roles that may use it.
"""

from __future__ import annotations

PRODUCER, WORKER, OBSERVER, NOBODY = "producer", "worker", "observer", "nobody"
EVERYBODY = (PRODUCER, WORKER, OBSERVER, NOBODY)

_enqueuers = {PRODUCER, WORKER}
_worker = {WORKER}
_readers = {WORKER, OBSERVER}
_no_role: set[str] = set()

FUNCTIONS: dict[str, set[str]] = {
    # enqueue
    "enqueue(text,jsonb,integer,timestamp with time zone,integer,uuid,interval,text"
    ",timestamp with time zone,interval,text,text,interval,text,text)": _enqueuers,
    "payload_key(jsonb)": _enqueuers,
    "enqueue_limited_now(text,jsonb,integer,integer,uuid,text,text,boolean)": _enqueuers,
    "limit_copied(uuid,uuid,text[])": _enqueuers,
    "enqueue_many(jsonb)": _enqueuers,
    "enqueue_now(text,jsonb,integer,timestamp with time zone,integer,uuid,interval"
    ",text,timestamp with time zone,interval,text)": _enqueuers,
    "async_commit()": _enqueuers,
    "wait_for_disk()": _enqueuers,
    "has_idle_worker()": _enqueuers,
    "notify_workers(text[])": _enqueuers,
    "new_id()": _enqueuers,
    "wake(text[])": _enqueuers,
    "lock_space()": _enqueuers,
    "is_new_id(uuid,integer)": _worker,
    "is_fresh_id(uuid)": _enqueuers,
    "payload_fits(jsonb)": _enqueuers,
    "refuse_max_attempts(integer)": _enqueuers,
    "refuse_used_ids(uuid,uuid)": _enqueuers,
    "refuse_used_ids(uuid[])": _enqueuers,
    "type_defaults(text)": _enqueuers,
    "refuse_used_id(uuid)": _worker,
    "refuse_unique_key(text,text,uuid)": _worker,
    "refuse_unique_options(text,text,interval,text)": _worker,
    # claim, run, settle
    "claim(text,integer,text[],integer[],timestamp with time zone[],uuid[],integer[]"
    ",boolean,boolean)": _worker,
    "claim_job_batch(text,text[],integer)": _worker,
    "claim_next(text,integer,text,integer,timestamp with time zone,uuid)": _worker,
    "fail_unreadable(text,text[],integer)": _worker,
    "start(text,uuid[],integer[],interval[])": _worker,
    "progress(text,uuid[],integer[],integer[],text[])": _worker,
    "emit(text,uuid[],integer[],text[],jsonb[])": _worker,
    "beat(text,uuid[],integer[],interval,jsonb)": _worker,
    "deregister(text)": _worker,
    "register_job_types(text,jsonb,text)": _worker,
    "touch_job_types(text[])": _worker,
    "complete(text,uuid[],integer[],jsonb[],interval[])": _worker,
    "complete_and_claim(text,uuid[],integer[],jsonb[],interval[],text[])": _worker,
    "complete_in_transaction(jsonb)": _worker,
    "completion_state(text,uuid,integer)": _worker,
    "fail(text,uuid[],integer[],text[],text[],interval[])": _worker,
    "retry(text,uuid[],integer[],text[],interval[],text[],interval[])": _worker,
    "release(text,uuid[],integer[],interval[])": _worker,
    "hand_back(text,uuid[],integer[],text[],text[])": _worker,
    "cancel(text,uuid[],integer[],text[],interval[])": _worker,
    "cancel(uuid[],text)": _worker,
    "notify_followers(uuid[])": _worker,
    "wait_for_turn(integer)": _worker,
    "refuse_holder_mismatch(uuid,text)": _worker,
    "refuse_claim(text,integer)": _worker,
    "append_error(jsonb,integer,text,text,text,timestamp with time zone,timestamp with time zone"
    ",boolean)": _worker,
    "lost_in_a_row(jsonb)": _worker,
    # schedules
    "set_schedule(text,text,jsonb,text,interval,text,text,text,jsonb,text,jsonb,text[])": _worker,
    "remove_schedule(text)": _worker,
    "pause_schedule(text,text)": _worker,
    "resume_schedule(text)": _worker,
    "run_schedule_now(text)": _worker,
    "due_schedules(integer)": _worker,
    "fire_schedules(jsonb)": _worker,
    "refuse_firing(howdah.schedules,timestamp with time zone[],timestamp with time zone"
    ",timestamp with time zone)": _no_role,
    "refuse_schedule(text,text,jsonb,text,interval,text,text,text,jsonb)": _worker,
    "refuse_unknown_schedule(text)": _worker,
    "register_schedules(text,text[],jsonb)": _worker,
    "notify_schedules()": _worker,
    "firing_id(timestamp with time zone)": _worker,
    "scheduled_for(uuid)": _readers,
    "scheduled_job(howdah.schedules,timestamp with time zone)": _no_role,
    "next_firing_in()": _worker,
    # admit
    "admit(text,integer,text)": _worker,
    "first_admission(text,text,boolean)": _worker,
    "is_ordered(text)": _worker,
    "next_in_order(text,text,integer)": _worker,
    "claim_run(text,uuid[],integer[],integer[])": _worker,
    "notify_admission()": _worker,
    "request_look(text,text,text)": _worker,
    "waiting_keys(text,text,integer)": _worker,
    "count_waiting_keys(text,integer)": _worker,
    "has_wide_key(text,integer)": _worker,
    "places(text)": _worker,
    "waiting_limits(text)": _worker,
    "request_all_looks()": _no_role,
    "take_back_runs(text[],text[],bigint[])": _no_role,
    "refuse_key(text)": _worker,
    "set_limit(text,integer,integer,interval,integer,boolean,text,jsonb)": _worker,
    "remove_limit(text)": _worker,
    "set_type_limit(text,integer,boolean,text,text,jsonb,boolean)": _worker,
    "clear_type_limit(text)": _worker,
    "register_limits(text,jsonb,jsonb)": _worker,
    # steps
    "load_steps(uuid[])": _worker,
    "save_steps(text,uuid[],integer[],text[],text[],integer[],text[],jsonb[],interval[]"
    ",interval[])": _worker,
    "save_checkpoints(text,uuid[],integer[],jsonb[])": _worker,
    "await_signals(text,uuid[],integer[],text[],integer[],interval[])": _worker,
    "suspend(text,uuid[],integer[],jsonb[])": _worker,
    "step_until(timestamp with time zone,interval)": _worker,
    "signal(uuid,text,jsonb)": _enqueuers,
    "join_line(uuid[])": _no_role,
    "forget_steps()": _no_role,
    # upkeep, observe
    "upkeep(interval,text)": _worker,
    "promote(integer)": _worker,
    "expire(integer)": _worker,
    "expiry(timestamp with time zone,interval,timestamp with time zone)": _worker,
    "in_utc(timestamp with time zone)": _worker,
    "with_expiry(text[],uuid[],integer)": _worker,
    "promote_due(text,text)": _worker,
    "next_due_in()": _worker,
    "notify_due(timestamp with time zone)": _worker,
    "recover_stale_jobs(interval)": _worker,
    "requeue(uuid[],integer)": _worker,
    "prune(interval)": _worker,
    "prepare_days(integer)": _worker,
    "compact_counts()": _worker,
    "watch(uuid[])": _worker,
    "record_measures(text,jsonb)": _worker,
    "compact_measures()": _worker,
    "sample_waiting(integer)": _worker,
    "sample_limits(integer)": _worker,
    # steer
    "pause(text,text,text)": _worker,
    "resume(text)": _worker,
    "reprioritise(uuid[],integer)": _worker,
    "run_now(uuid[])": _worker,
    "clone(uuid[])": _worker,
    "delete(uuid[])": _worker,
    "drain(text)": _worker,
    # queries
    "measured(timestamp with time zone)": _readers,
    "measured_by_minute(timestamp with time zone)": _readers,
    "lane_counts(integer,integer,text)": _readers,
    "waits_for(text,text,timestamp with time zone,integer,text)": _readers,
    "key_counts(text,integer,integer)": _readers,
    "limited_counts(integer)": _readers,
    "held_counts(integer)": _readers,
    "scheduled_counts(integer)": _readers,
    "jobs_ahead(text[],integer,timestamp with time zone,uuid,integer)": _readers,
    "workers_now(integer)": _readers,
    "recent_failures(text,integer,integer)": _readers,
    "retrying_failures(text,integer)": _readers,
    "limit_counts(integer,integer,text)": _readers,
    "slot_wait_counts(integer,integer)": _readers,
    "jobs_by_id(uuid[])": _readers,
    "fingerprint(text)": _readers,
    "today()": _readers,
    "clock()": {PRODUCER, WORKER, OBSERVER},
    "option(text)": {PRODUCER, WORKER, OBSERVER},
    # internal to the settling verbs, without a check of the lease
    "finish(text,text,uuid[],integer[],text[],text[],jsonb[],interval[],boolean,boolean"
    ",text[])": _no_role,
    # internal to claim
    "peek_best(integer,howdah.line_range[],timestamp with time zone)": _no_role,
    "lock_best(integer,howdah.line_range[],timestamp with time zone)": _no_role,
    # internal to enqueue, finish, requeue and prune: they take and release unique keys
    "take_unique_key(text,text,uuid,timestamp with time zone,boolean)": _no_role,
    "take_unique_keys(jsonb)": _no_role,
    "take_inserted_key(text,text,uuid,text)": _no_role,
    "take_requeued_keys(uuid[])": _no_role,
    "holds_unique_key(howdah.unique_keys,boolean)": _no_role,
    "release_unique_keys(text[],uuid[])": _no_role,
    "meet_existing(text,uuid,text,text,jsonb,timestamp with time zone"
    ",timestamp with time zone)": _no_role,
    "meet_holders(jsonb)": _no_role,
    "debounce(uuid,timestamp with time zone,timestamp with time zone)": _no_role,
    "forget_unique_keys()": _no_role,
    # internal to compact_measures
    "compact_limit_history()": _no_role,
    # internal to recover
    "enter_held(text[],interval)": _no_role,
    # internal to the settling verbs, to enqueue and to admit
    "hand_over(howdah.freed_slot[],text,text[],boolean)": _no_role,
    "may_claim(text[],text,text,timestamp with time zone,timestamp with time zone"
    ",timestamp with time zone)": _worker,
    "enqueue_limited(text,jsonb,integer,timestamp with time zone,integer,uuid,text,text"
    ",boolean,timestamp with time zone,text,text)": _no_role,
    "limit_new(uuid[])": _no_role,
    "admit_keys(text[],text[])": _no_role,
    "admit_limit(text,timestamp with time zone)": _no_role,
    "apply_type_limit(text,boolean)": _no_role,
    "fit_fair_widths(text[],boolean)": _no_role,
    # triggers: PostgreSQL lets no role call them
    "take_plain_insert()": _worker,
    "take_plain_update()": _worker,
    "take_plain_revival()": _worker,
    "take_plain_delete()": _worker,
    "notify_plain_update()": _worker,
    "refuse_new_key()": _worker,
}

# Called with CALL, not with SELECT.
PROCEDURES = {
    (
        "enqueue_now(text,jsonb,integer,timestamp with time zone,integer,uuid,interval"
        ",text,timestamp with time zone,interval,text)"
    )
}

# Columns that a producer may write, and that a worker may change by plain SQL.
ENQUEUED = {
    *("id", "job_type", "priority", "data", "max_attempts", "run_at", "expires_at", "trace"),
    *("unique_key", "unique_until", "key"),
}
# A trigger of the parent table has to see these.
CHECKED = {"run_at", "expires_at", "unique_key", "unique_until", "key"}
SETTLED = {
    *("status", "progress", "current_stage", "worker_id", "claimed_at", "started_at"),
    *("completed_at", "last_error", "run_at", "priority", "expires_at"),
}
ALL = {"*"}

# relation → privilege → role → columns. One day partition represents all.
RELATIONS: dict[str, dict[str, dict[str, set[str]]]] = {
    "jobs": {
        "select": {WORKER: ALL, OBSERVER: ALL},
        "insert": {PRODUCER: ENQUEUED, WORKER: ENQUEUED},
        "update": {WORKER: SETTLED},
    },
    "jobs_live": {
        "select": {WORKER: ALL, OBSERVER: ALL},
        "insert": {PRODUCER: ENQUEUED - CHECKED, WORKER: ENQUEUED - CHECKED},
    },
    "installed": {"select": {PRODUCER: ALL, WORKER: ALL, OBSERVER: ALL}},
    "job_types": {"select": {PRODUCER: ALL, WORKER: ALL, OBSERVER: ALL}},
    "type_limits": {"select": {PRODUCER: {"job_type"}, WORKER: ALL, OBSERVER: ALL}},
    **{
        name: {"select": {WORKER: ALL, OBSERVER: ALL}}
        for name in (
            *("jobs_finished", "jobs_finished_unprepared", "jobs_finished_DAY"),
            *("job_events", "job_events_unprepared", "job_events_DAY"),
            *("unique_keys", "job_steps", "job_signals"),
            *("finished_counts", "workers", "moves", "options", "queue_depth", "worker_health"),
            *("measures", "measure_history", "paused_types", "drain_requests", "upkeep_log"),
            *("limits", "rate_states", "admission_requests", "limit_history", "schedules"),
        )
    },
}

SEQUENCES: dict[str, dict[str, set[str]]] = {
    "id_counter": {"usage": _enqueuers},
    "waits_for_disk": {},
    "arrivals": {},
    "next_look_by": {},
    "search_behind_until": {},
    "job_signals_number_seq": {},
}

# Every role may use a domain: it only checks a value.
TYPES = {
    *("job_status", "job_name", "worker_name", "instant"),
    *("json_object", "json_value", "long_text", "percent", "attempts_made", "attempts_allowed"),
    *("unique_key", "unique_until"),
}

# The only functions that build a statement from text, and their placeholders.
WRITES_STATEMENTS = {"prepare_days(integer)", "prune(interval)"}
