"""The procedure `enqueue_now` has the same result as `enqueue`, with and without idle workers.

It inserts an ordinary job by itself and calls `enqueue` for any other. Its waits and the start of
its job are tested in tests/stories/test_enqueue_now.py.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from tests.support import Database
from tests.support.database import Row
from tests.support.listener import Heard, Listener

pytestmark = pytest.mark.engine

ORDER = ("job_type", "data", "priority", "run_at", "max_attempts", "id", "delay", "trace")
USUAL: dict[str, Any] = {
    "job_type": "mail",
    "data": {"to": "you"},
    "priority": 150,
    "run_at": None,
    "max_attempts": 7,
    "id": None,
    "delay": None,
    "trace": None,
}
KINDS: dict[str, dict[str, Any]] = {
    "usual": {},
    "traced": {"trace": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
    "large": {"data": {"text": "x" * 5000}},
    "of the last small size": {"data": {"text": "x" * (1000 - len('{"text": ""}'))}},
    "late": {"delay": "1 hour"},
    "due": {"run_at": datetime(2020, 1, 1, tzinfo=UTC)},
    "not due": {"run_at": datetime(9000, 1, 1, tzinfo=UTC)},
}
REFUSED: dict[str, dict[str, Any]] = {
    "type": {"job_type": ""},
    "data": {"data": [1]},
    "large data": {"data": {"text": "x" * 2_000_000}},
    "attempts": {"max_attempts": 0},
    "instant": {"run_at": "infinity"},
}
DIFFERENT_PER_CALL = {"id", "ready_at", "created_at", "run_at"}  # differ between two calls


@pytest.fixture(params=["no idle worker", "an idle worker"])
def listener(db: Database, request: pytest.FixtureRequest) -> Listener:
    new_listener = Listener(db)
    if request.param == "an idle worker":
        new_listener.sleep()
    return new_listener


def call(db: Database, sql: str, changed: dict[str, Any]) -> Row:
    """Enqueue a job; return its row without the values that differ between two calls."""
    arguments_by_name = USUAL | {"id": uuid4()} | changed
    values = [
        Jsonb(arguments_by_name[name]) if name == "data" else arguments_by_name[name]
        for name in ORDER
    ]
    arguments = "%s::text, %s, %s::int, %s, %s::int, %s, %s, %s::text"
    db.execute(sql.format(arguments), *values)
    row = db.job(arguments_by_name["id"])
    times = {"ready_after": row["ready_at"] and row["ready_at"] - row["created_at"]}
    if arguments_by_name["delay"] is not None:
        times["delay"] = row["run_at"] - row["created_at"]
    else:
        times["run_at"] = row["run_at"]
    return {key: row[key] for key in row if key not in DIFFERENT_PER_CALL} | times


def enqueue_now(db: Database, changed: dict[str, Any]) -> Row:
    return call(db, "call howdah.enqueue_now({})", changed)


def enqueue(db: Database, changed: dict[str, Any]) -> Row:
    return call(db, "select howdah.enqueue({})", changed)


@pytest.mark.parametrize("kind", KINDS)
def test_it_writes_the_row_and_sends_the_notifications_of_enqueue(
    db: Database, listener: Listener, kind: str
) -> None:
    row, notifications = enqueue(db, KINDS[kind]), listener.heard()
    assert enqueue_now(db, KINDS[kind]) == row
    assert listener.heard() == notifications


@pytest.mark.parametrize("kind", REFUSED)
def test_it_refuses_the_same_arguments_as_enqueue(
    db: Database, listener: Listener, kind: str
) -> None:
    errors: list[tuple[str | None, str | None]] = []
    for function in (enqueue, enqueue_now):
        with pytest.raises(psycopg.Error) as refused:
            function(db, REFUSED[kind])
        errors.append((refused.value.sqlstate, refused.value.diag.constraint_name))
    assert errors[0] == errors[1]
    assert (db.counted(), listener.heard()) == ({}, [])


def test_a_job_without_an_id_gets_one(db: Database, listener: Listener) -> None:
    db.execute("call howdah.enqueue_now('mail', '{}', 100, null, 3, null, null)")
    assert [claim.job_type for claim in db.claim("mail")] == ["mail"]


def test_an_idle_worker_is_notified_with_the_job_type(db: Database) -> None:
    listener = Listener(db)
    listener.sleep()
    enqueue_now(db, {})
    assert listener.heard() == [Heard("howdah_wake", json.dumps(["mail"]))]


def test_a_rule_that_another_session_sets_counts_from_the_next_call(db: Database) -> None:
    producer, person = db.session(), db.session()

    def admission() -> str | None:
        id = db.value("select howdah.new_id()")
        producer.execute("call howdah.enqueue_now('mail', '{}', 100, null, 3, %s, null)", id)
        return db.job(id)["admission"]

    before = [admission() for _ in range(7)]  # so many that the plan is kept
    person.execute("select howdah.set_limit('smtp', 1)")
    person.execute("select howdah.set_type_limit('mail', null, false, 'smtp')")
    limited = admission()
    person.execute("select howdah.clear_type_limit('mail')")
    assert (before, limited, admission()) == ([None] * 7, "limit", None)
