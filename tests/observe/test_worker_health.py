"""worker_health shows which workers are alive, how long each is silent and how much it holds."""

from __future__ import annotations

from datetime import timedelta

import pytest
from psycopg.types.json import Jsonb

from tests.support import Database
from tests.support.database import Row

pytestmark = pytest.mark.engine

SILENT_AFTER = timedelta(seconds=15)


def health(db: Database, worker: str) -> Row:
    (row,) = db.rows("select * from worker_health where id = %s", worker)
    return row


def test_a_beating_worker_is_alive_and_holds_its_claimed_jobs(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 3)
    db.beat("first", silent_after=SILENT_AFTER)
    db.claim("mail", worker="first", batch=2)
    row = health(db, "first")
    assert (row["alive"], row["holds"], row["given_up_at"]) == (True, 2, None)
    assert row["silent_after"] == SILENT_AFTER


def test_a_silent_worker_is_not_alive_and_is_given_up(db: Database) -> None:
    db.enqueue("mail")
    db.beat("first", silent_after=SILENT_AFTER)
    db.claim("mail", worker="first")
    db.clock.advance(SILENT_AFTER * 2)
    row = health(db, "first")
    assert (row["alive"], row["holds"], row["given_up_at"]) == (False, 1, None)
    assert row["silent_for"] >= SILENT_AFTER * 2
    db.recover_stale_jobs()
    row = health(db, "first")
    assert (row["alive"], row["holds"]) == (False, 0)
    assert row["given_up_at"] is not None
    db.beat("first", silent_after=SILENT_AFTER)
    assert (health(db, "first")["alive"], health(db, "first")["given_up_at"]) == (True, None)


def test_a_beat_without_info_keeps_the_info_of_the_worker(db: Database) -> None:
    beat = "select howdah.beat('first', p_info => %s)"
    db.execute(beat, Jsonb({"host": "a"}))
    started = health(db, "first")["started_at"]
    db.clock.advance(timedelta(seconds=1))
    db.beat("first")
    row = health(db, "first")
    assert row["info"] == {"host": "a"}
    assert row["started_at"] == started < row["beat_at"]
    db.execute(beat, Jsonb({"host": "b"}))
    assert health(db, "first")["info"] == {"host": "b"}


def test_a_deregistered_worker_is_not_listed(db: Database) -> None:
    db.beat("first")
    db.deregister("first")
    assert db.rows("select * from worker_health") == []
