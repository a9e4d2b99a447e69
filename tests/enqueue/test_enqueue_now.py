"""The procedure `enqueue_now` leaves what `enqueue` leaves, whoever sleeps.

It inserts a usual job by itself and asks `enqueue` for any other. What it waits for, and when its
job begins, is told in tests/stories/test_hand_over.py.
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
OF_THE_CALL = {"id", "ready_at", "created_at", "run_at"}  # differ from one call to the next


@pytest.fixture(params=["nobody sleeps", "somebody sleeps"])
def listener(db: Database, request: pytest.FixtureRequest) -> Listener:
    made = Listener(db)
    if request.param == "somebody sleeps":
        made.sleep()
    return made


def call(db: Database, sql: str, changed: dict[str, Any]) -> Row:
    """Enqueue a job; returns its row without what differs from one call to the next."""
    given = USUAL | {"id": uuid4()} | changed
    values = [Jsonb(given[name]) if name == "data" else given[name] for name in ORDER]
    arguments = "%s::text, %s, %s::int, %s, %s::int, %s, %s, %s::text"
    db.execute(sql.format(arguments), *values)
    row = db.job(given["id"])
    seen = {"stood": row["ready_at"] and row["ready_at"] - row["created_at"]}
    if given["delay"] is not None:
        seen["waits"] = row["run_at"] - row["created_at"]
    else:
        seen["run_at"] = row["run_at"]
    return {key: row[key] for key in row if key not in OF_THE_CALL} | seen


def enqueue_now(db: Database, changed: dict[str, Any]) -> Row:
    return call(db, "call howdah.enqueue_now({})", changed)


def enqueue(db: Database, changed: dict[str, Any]) -> Row:
    return call(db, "select howdah.enqueue({})", changed)


@pytest.mark.parametrize("kind", KINDS)
def test_it_leaves_and_says_what_enqueue_does(db: Database, listener: Listener, kind: str) -> None:
    usual, told = enqueue(db, KINDS[kind]), listener.heard()
    assert enqueue_now(db, KINDS[kind]) == usual
    assert listener.heard() == told


@pytest.mark.parametrize("kind", REFUSED)
def test_it_refuses_what_enqueue_refuses(db: Database, listener: Listener, kind: str) -> None:
    words: list[tuple[str | None, str | None]] = []
    for way in (enqueue, enqueue_now):
        with pytest.raises(psycopg.Error) as refused:
            way(db, REFUSED[kind])
        words.append((refused.value.sqlstate, refused.value.diag.constraint_name))
    assert words[0] == words[1]
    assert (db.counted(), listener.heard()) == ({}, [])


def test_a_job_without_an_id_is_given_one(db: Database, listener: Listener) -> None:
    db.execute("call howdah.enqueue_now('mail', '{}', 100, null, 3, null, null)")
    assert [claim.job_type for claim in db.claim("mail")] == ["mail"]


def test_a_sleeper_hears_the_type(db: Database) -> None:
    listener = Listener(db)
    listener.sleep()
    enqueue_now(db, {})
    assert listener.heard() == [Heard("howdah_wake", json.dumps(["mail"]))]
