"""After an outage of the database, no worker is given up for beats that it could not send."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

LEASE = timedelta(seconds=15)
BEAT = LEASE / 5


def upkeep(db: Database, worker: str | None) -> None:
    db.rows("select * from howdah.upkeep('1 hour', %s)", worker)


def beat_regularly(db: Database, *workers: str) -> None:
    """Let workers beat at their interval, for longer than a lease."""
    for _ in range(6):
        for worker in workers:
            db.beat(worker, silent_after=LEASE)
        db.clock.advance(BEAT)


def status(db: Database) -> State:
    return State(db.value("select status from jobs"))


def test_a_worker_that_beat_all_the_time_gives_up_a_silent_one(db: Database) -> None:
    db.enqueue("long")
    db.beat("silent", silent_after=LEASE)
    db.claim("long", worker="silent")
    beat_regularly(db, "regular")
    upkeep(db, "regular")
    assert status(db) is State.PENDING


def test_a_worker_that_was_cut_off_waits_before_it_gives_up_others(db: Database) -> None:
    db.enqueue("long")
    beat_regularly(db, "other", "regular")
    db.claim("long", worker="other")
    db.clock.advance(timedelta(hours=1))  # no worker reaches the database
    upkeep(db, "regular")
    assert status(db) is State.CLAIMED, "its own last beat is too old"
    db.beat("regular", silent_after=LEASE)
    upkeep(db, "regular")
    assert status(db) is State.CLAIMED, "its own beats resumed just now"
    beat_regularly(db, "regular")
    upkeep(db, "regular")
    assert status(db) is State.PENDING, "the other had enough time to beat"


def test_a_new_worker_gives_up_no_other_worker(db: Database) -> None:
    db.enqueue("long")
    db.beat("other", silent_after=LEASE)
    db.claim("long", worker="other")
    db.clock.advance(timedelta(hours=1))
    db.beat("new", silent_after=LEASE)
    upkeep(db, "new")
    assert status(db) is State.CLAIMED


def test_upkeep_without_a_worker_gives_up_silent_workers_at_once(db: Database) -> None:
    db.enqueue("long")
    db.beat("other", silent_after=LEASE)
    db.claim("long", worker="other")
    db.clock.advance(timedelta(hours=1))
    upkeep(db, None)
    assert status(db) is State.PENDING


def test_a_worker_that_gives_up_no_other_still_promotes_due_jobs(db: Database) -> None:
    db.enqueue("later", delay=timedelta(minutes=1))
    db.clock.advance(timedelta(hours=1))
    db.beat("new", silent_after=LEASE)
    upkeep(db, "new")
    assert len(db.claim("later")) == 1
