"""Promote lets jobs whose time has come join the line, and upkeep tells when the next is due."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def test_what_is_due_joins_and_what_is_not_stays(db: Database) -> None:
    soon = db.enqueue("mail", delay=HOUR)
    db.enqueue("mail", delay=3 * HOUR)
    db.clock.advance(2 * HOUR)
    assert db.promote() == {soon}
    assert db.promote() == set()
    assert [claim.id for claim in db.claim("mail")] == [soon]


def test_no_more_than_asked_for_and_the_earliest_first(db: Database) -> None:
    jobs = [db.enqueue("mail", delay=n * HOUR) for n in (3, 1, 2)]
    db.clock.advance(4 * HOUR)
    assert db.promote(1) == {jobs[1]}
    assert db.promote(1) == {jobs[2]}
    assert db.promote(1) == {jobs[0]}


def test_what_another_session_holds_is_skipped(db: Database) -> None:
    held, free = db.enqueue("mail", delay=HOUR), db.enqueue("mail", delay=HOUR)
    db.clock.advance(HOUR)
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", held)
        assert db.promote() == {free}
    assert db.promote() == {held}


def test_upkeep_tells_when_the_next_is_due(db: Database) -> None:
    assert db.upkeep()[0]["next_due_in"] is None
    with db.transaction():
        db.enqueue("mail", delay=2 * HOUR)
        db.enqueue("mail", delay=HOUR)
        assert db.upkeep()[0]["next_due_in"] == HOUR


def test_upkeep_promotes_and_recovers_and_says_so(db: Database) -> None:
    db.enqueue("mail", delay=HOUR)
    db.enqueue("mail")
    db.enqueue("mail", max_attempts=1)
    db.claim("mail", worker="first")
    db.clock.advance(HOUR)
    (told,) = db.upkeep()
    assert (told["promoted"], told["recovered"], told["failed"]) == (1, 1, 1)
    assert told["silent_workers"] == ["first"]


def test_one_upkeep_at_a_time(db: Database) -> None:
    other = db.session()
    with other.transaction():
        assert len(other.upkeep()) == 1
        assert db.upkeep() == []  # and did not wait
    assert len(db.upkeep()) == 1


def test_counts_are_folded_and_stay_true(db: Database) -> None:
    for _ in range(10):
        db.enqueue("mail")
        db.complete(db.claim("mail"))
    before = db.depth()
    assert db.value("select count(*) from finished_counts") == 10
    db.execute("select howdah.compact_counts()")
    assert db.value("select count(*) from finished_counts") == 1
    assert db.depth() == before == db.counted()


def test_upkeep_folds_once_there_are_many(db: Database) -> None:
    db.execute(
        "insert into finished_counts select today(), 'mail', 'completed', 1 "
        "from generate_series(1, 499)"
    )
    db.upkeep()
    assert db.value("select count(*) from finished_counts") == 499
    db.execute("insert into finished_counts values (today(), 'mail', 'completed', 1)")
    db.upkeep()
    assert db.rows("select jobs from finished_counts") == [{"jobs": 500}]
