"""After an outage nobody is given up for a silence that was the database's, not theirs."""

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


def steady(db: Database, *workers: str) -> None:
    """Let workers beat as often as they do, for longer than a lease."""
    for _ in range(6):
        for worker in workers:
            db.beat(worker, silent_after=LEASE)
        db.clock.advance(BEAT)


def status(db: Database) -> State:
    return State(db.value("select status from jobs"))


def test_who_was_heard_all_the_time_gives_up_who_was_not(db: Database) -> None:
    db.enqueue("long")
    db.beat("silent", silent_after=LEASE)
    db.claim("long", worker="silent")
    steady(db, "judge")
    upkeep(db, "judge")
    assert status(db) is State.PENDING


def test_who_was_cut_off_gives_the_others_as_long_to_come_back(db: Database) -> None:
    db.enqueue("long")
    steady(db, "other", "judge")
    db.claim("long", worker="other")
    db.clock.advance(timedelta(hours=1))  # nobody gets through
    upkeep(db, "judge")
    assert status(db) is State.CLAIMED, "it was not heard of late itself"
    db.beat("judge", silent_after=LEASE)
    upkeep(db, "judge")
    assert status(db) is State.CLAIMED, "it has only just come back"
    steady(db, "judge")
    upkeep(db, "judge")
    assert status(db) is State.PENDING, "the other had time enough"


def test_a_worker_that_has_only_just_come_judges_nobody_yet(db: Database) -> None:
    db.enqueue("long")
    db.beat("other", silent_after=LEASE)
    db.claim("long", worker="other")
    db.clock.advance(timedelta(hours=1))
    db.beat("newcomer", silent_after=LEASE)
    upkeep(db, "newcomer")
    assert status(db) is State.CLAIMED


def test_who_is_no_worker_judges_at_once(db: Database) -> None:
    db.enqueue("long")
    db.beat("other", silent_after=LEASE)
    db.claim("long", worker="other")
    db.clock.advance(timedelta(hours=1))
    upkeep(db, None)
    assert status(db) is State.PENDING


def test_what_is_due_is_promoted_by_who_judges_nobody(db: Database) -> None:
    db.enqueue("later", delay=timedelta(minutes=1))
    db.clock.advance(timedelta(hours=1))
    db.beat("newcomer", silent_after=LEASE)
    upkeep(db, "newcomer")
    assert len(db.claim("later")) == 1
