"""Least privilege: each role can do its own work, and nothing else.

Every role tries every function, table, view and sequence of the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from howdah.states import State
from tests.store.roles import Roles, roles_in
from tests.support import Session
from tests.support.databases import Databases
from tests.support.listener import Listener

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def roles(databases: Databases) -> Generator[Roles]:
    with roles_in(databases) as all_roles:
        yield all_roles


# ── every function ──

FUNCTIONS_OF_A_PRODUCER = {
    "enqueue",
    "enqueue_many",
    "new_id",
    "clock",
    "wake",
    "lock_space",
    "option",
    *("enqueue_now", "has_idle_worker", "notify_workers", "async_commit", "wait_for_disk"),
    *("is_fresh_id", "payload_fits", "refuse_max_attempts", "refuse_used_ids"),
    *("type_defaults", "limit_copied", "enqueue_limited_now"),
    *("payload_key", "signal"),
}
FUNCTIONS_OF_AN_OBSERVER = {
    *("clock", "today", "option", "fingerprint"),
    *("measured", "measured_by_minute", "lane_counts", "held_counts", "scheduled_counts"),
    *("waits_for", "key_counts", "limited_counts"),
    *("jobs_ahead", "workers_now", "recent_failures", "retrying_failures", "jobs_by_id"),
    *("limit_counts", "slot_wait_counts", "scheduled_for"),
}
# internal functions: `finish` checks no lease; the others are parts of claim, enqueue, recover and
# admit
FUNCTIONS_OF_NO_ROLE = {
    *("enter_held", "finish", "lock_best", "peek_best"),
    *("take_unique_key", "take_unique_keys", "take_inserted_key", "take_requeued_keys"),
    *("holds_unique_key", "release_unique_keys", "meet_existing", "meet_holders", "debounce"),
    *("forget_unique_keys", "enqueue_limited"),
    *("hand_over", "limit_new", "admit_keys", "admit_limit", "apply_type_limit"),
    *("request_all_looks", "fit_fair_widths", "compact_limit_history", "take_back_runs"),
    *("join_line", "forget_steps"),
    *("scheduled_job", "refuse_firing"),
}


def may_call(role: str, function: str) -> bool:
    match role:
        case "producer":
            return function in FUNCTIONS_OF_A_PRODUCER
        case "worker":
            return function not in FUNCTIONS_OF_NO_ROLE
        case "observer":
            return function in FUNCTIONS_OF_AN_OBSERVER
        case _:
            return False


def refused(session: Session, sql: str) -> bool:
    """Whether a statement is refused for a missing privilege; its changes are rolled back."""
    with session.rolled_back():
        try:
            with session.transaction():
                session.execute(sql)
        except psycopg.errors.InsufficientPrivilege:
            return True
        except psycopg.Error:
            return False  # allowed to run; null arguments are refused
    return False


@pytest.mark.parametrize("role", ["producer", "worker", "observer", "nobody"])
def test_a_role_can_call_only_the_functions_that_it_needs(roles: Roles, role: str) -> None:
    functions = roles.owner.rows(
        "select case prokind when 'p' then 'call' else 'select' end as word, proname as name, "
        "array(select case when t.typnamespace = 'howdah'::regnamespace then 'howdah.' else '' end "
        "|| t.oid::regtype::text from unnest(proargtypes) with ordinality as a (oid, nth) "
        "join pg_type as t on t.oid = a.oid order by nth) as types, "
        "prorettype = 'trigger'::regtype as is_trigger "
        "from pg_proc where pronamespace = 'howdah'::regnamespace order by 1"
    )
    assert len(functions) > 25
    refusals = {
        f"{each['name']}({', '.join(each['types'])})": refused(
            roles.named(role),
            f"{each['word']} howdah.{each['name']}"
            f"({', '.join(f'null::{t}' for t in each['types'])})",
        )
        for each in functions
        if not each["is_trigger"]
    }
    expected = {call: not may_call(role, call.partition("(")[0]) for call in refusals}
    assert refusals == expected


# ── every table, view and sequence ──

INSERTS = {"jobs", "jobs_live"}


def may_use(role: str, action: str, relation: str) -> bool:
    match role, action:
        case ("producer", "read"):
            return relation in ("installed", "job_types")
        case ("producer", "insert"):
            return relation in INSERTS
        case ("worker", "read") | ("observer", "read"):
            return True
        case ("worker", "insert"):
            return relation in INSERTS
        case ("worker", "update"):
            return relation == "jobs"
        case _:
            return False


@pytest.mark.parametrize("role", ["producer", "worker", "observer", "nobody"])
def test_a_role_can_use_only_the_tables_that_it_needs(roles: Roles, role: str) -> None:
    relations = roles.owner.rows(
        "select relname as name, (select attname from pg_attribute where attrelid = c.oid "
        "and attnum > 0 and attname in ('status', 'id', 'name', 'verb', 'day', 'one', "
        "'requested_at', 'done_at', 'limited_by') "
        "order by attname = 'status' desc limit 1) as column, "
        "exists (select from pg_attribute where attrelid = c.oid and attname = 'job_type') "
        "as has_type from pg_class as c "
        "where relnamespace = 'howdah'::regnamespace and relkind in ('r', 'p', 'v') order by 1"
    )
    assert len(relations) > 15
    session = roles.named(role)
    refusals: dict[tuple[str, str], bool] = {}
    expected: dict[tuple[str, str], bool] = {}
    for each in relations:
        name, column = each["name"], each["column"] or "job_type"
        first = "job_type" if each["has_type"] else column
        for action, sql in {
            "read": f"select * from howdah.{name}",
            "insert": f"insert into howdah.{name} ({first}) values (null)",
            "update": f"update howdah.{name} set {column} = null where false",
            "delete": f"delete from howdah.{name}",
            "truncate": f"truncate howdah.{name}",
            "drop": f"drop table howdah.{name}",
            "alter": f"alter table howdah.{name} add column more int",
        }.items():
            refusals[name, action] = refused(session, sql)
            expected[name, action] = not may_use(role, action, name)
    # PostgreSQL refuses to write to these views before it checks privileges
    for name in ("queue_depth", "worker_health"):
        for action in ("insert", "update", "delete", "truncate", "drop", "alter"):
            refusals.pop((name, action))
            expected.pop((name, action))
    assert refusals == expected


@pytest.mark.parametrize("role", ["producer", "worker", "observer", "nobody"])
def test_only_producers_and_workers_use_the_sequence_and_none_can_set_it(
    roles: Roles, role: str
) -> None:
    session = roles.named(role)
    numbers = role in ("producer", "worker")
    assert refused(session, "select nextval('howdah.id_counter')") is not numbers
    assert refused(session, "select setval('howdah.id_counter', 1)")


@pytest.mark.parametrize("role", ["producer", "worker", "observer", "nobody"])
def test_no_role_can_create_objects_in_the_schema(roles: Roles, role: str) -> None:
    session = roles.named(role)
    assert refused(session, "create table howdah.more (n int)")
    assert refused(session, "create function howdah.more() returns int language sql as 'select 1'")


# ── what each role is for ──


def test_a_producer_enqueues_in_every_way_and_reads_nothing_back(roles: Roles) -> None:
    producer = roles.producer
    job = producer.enqueue("produced", {"n": 1}, priority=150)
    (second,) = producer.enqueue_many([{"job_type": "produced"}])
    producer.plain(
        "INSERT INTO jobs (job_type, priority, data) VALUES ($1, $2, $3)", "produced", 30, "{}"
    )
    for table in ("jobs", "jobs_live"):
        with (
            producer.connection.cursor() as cursor,
            cursor.copy(f"COPY howdah.{table} (job_type, data) FROM STDIN".encode()) as copy,
        ):
            copy.write_row(("produced", "{}"))
    claims = roles.owner.claim("produced")
    assert len(claims) == 5
    assert {job, second} < {claim.id for claim in claims}
    for sql in (
        "insert into jobs (job_type) values ('produced') returning id",
        "select count(*) from jobs",
        "insert into jobs (job_type, status) values ('produced', 'completed')",
        "insert into jobs (job_type, attempts) values ('produced', 5)",
        "insert into jobs (job_type, worker_id) values ('produced', 'me')",
        "insert into jobs_live (job_type, ready_at) values ('produced', now())",
        "insert into jobs_live (job_type, run_at) values ('produced', now())",
        "update jobs set priority = 1000",
        "select howdah.cancel(array[howdah.new_id()])",
        "delete from jobs",
    ):
        assert refused(producer, sql), sql


def test_a_producer_wakes_a_sleeping_worker_and_has_the_same_limits(roles: Roles) -> None:
    listener = Listener(roles.owner)
    listener.sleep()
    roles.producer.enqueue("woken")
    roles.producer.plain("INSERT INTO jobs (job_type) VALUES ('woken')")
    assert len(listener.heard()) == 2
    listener.wake_up()
    for sql in (
        "select howdah.enqueue('woken', %s)",
        "insert into jobs (job_type, data) values ('woken', %s)",
        "insert into jobs_live (job_type, data) values ('woken', %s)",
        "call howdah.enqueue_now('woken', %s, 100, null, 3, howdah.new_id(), null)",
    ):
        with pytest.raises(psycopg.Error) as too_large:
            roles.producer.execute(sql, f'{{"a": "{"x" * 300_000}"}}')
        assert too_large.value.sqlstate == "HW001"


def test_a_producer_can_enqueue_for_later(roles: Roles) -> None:
    waiting = roles.producer.enqueue("later", delay=timedelta(hours=1))
    roles.producer.execute(
        "insert into jobs (job_type, run_at) values ('later', now() + interval '1 hour')"
    )
    assert roles.owner.claim("later") == []
    assert roles.owner.state_of(waiting) is State.PENDING


def test_an_observer_reads_everything(roles: Roles) -> None:
    job = roles.owner.enqueue("observed")
    claims = roles.owner.claim("observed")
    roles.owner.emit(claims, "seen")
    roles.owner.beat("w")
    observer = roles.observer
    assert observer.state_of(job) is State.CLAIMED
    assert observer.depth() == roles.owner.depth()
    assert len(observer.rows("select * from worker_health where id = 'w'")) == 1
    assert len(observer.rows("select * from job_events where job_id = %s", job)) == 1
    assert observer.value("select howdah.option('keep_finished')") == "7 days"


def test_day_partitions_made_after_the_grants_can_be_read_through_jobs(
    databases: Databases,
) -> None:
    with roles_in(databases) as roles:
        roles.owner.clock.advance(timedelta(days=20))
        assert roles.worker.prepare_days()
        job = roles.owner.enqueue("observed later")
        claims = roles.worker.claim("observed later")
        roles.worker.emit(claims, "seen")
        roles.worker.complete(claims)
        for session in (roles.observer, roles.worker):
            assert session.state_of(job) is State.COMPLETED
            assert session.column("select kind from job_events where job_id = %s", job) == ["seen"]


def test_a_worker_can_use_every_verb(roles: Roles) -> None:
    worker = roles.worker

    def enqueue_and_claim(**options: Any) -> list[Any]:
        worker.enqueue("worked", **options)
        return worker.claim("worked", worker="w")

    claims = enqueue_and_claim()
    job = claims[0].id
    assert worker.start(claims) == {job}
    assert worker.progress(claims, 50, "half") == {job}
    assert worker.emit(claims, "frame") == {job}
    assert worker.beat("w", claims) == set()
    assert worker.complete(claims) == {job}
    claims = enqueue_and_claim(max_attempts=1)
    assert set(worker.retry(claims).values()) == {State.FAILED}
    assert worker.requeue(claims[0].id) == {claims[0].id}
    endings: list[Callable[[list[Any]], set[Any]]] = [
        worker.fail,
        worker.cancel_held,
        lambda claims: worker.cancel(claims[0].id),
    ]
    for end in endings:
        claims = worker.claim("worked", worker="w") or enqueue_and_claim()
        assert end(claims) == {claims[0].id}
    claims = enqueue_and_claim()
    assert worker.release(claims) == {claims[0].id}
    worker.rows("select * from howdah.watch(%s)", [job])
    worker.upkeep()
    worker.recover_stale_jobs()
    worker.promote()
    worker.prepare_days()
    worker.prune()
    worker.deregister("w")


def test_a_worker_settles_by_plain_sql(roles: Roles) -> None:
    worker = roles.worker
    job = worker.enqueue("plainly", max_attempts=2)
    worker.claim("plainly")
    fail = """
        UPDATE jobs SET
        status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,
        last_error=$2, worker_id=NULL, claimed_at=NULL WHERE id=$1
    """
    assert worker.plain(fail, job, "no route") == 1
    worker.claim("plainly")
    assert worker.plain(fail, job, "no route") == 1
    assert worker.state_of(job) is State.FAILED
    other = worker.enqueue("plainly")
    worker.claim("plainly")
    complete = "UPDATE jobs SET status='completed', progress=100, completed_at=now() WHERE id=$1"
    assert worker.plain(complete, other) == 1
    assert worker.state_of(other) is State.COMPLETED
    assert roles.owner.depth() == roles.owner.counted()


def test_a_worker_cannot_end_jobs_without_a_lease_or_change_options(roles: Roles) -> None:
    for sql in (
        "select howdah.finish('completed', null, '{}', '{}', p_fenced => false)",
        "update howdah.options set value = '1'",
        "update howdah.jobs set attempts = 0",
        "update howdah.jobs set data = '{}'",
        "delete from howdah.jobs",
        "insert into howdah.finished_counts values (now(), 'x', 'completed', 5)",
    ):
        assert refused(roles.worker, sql), sql
