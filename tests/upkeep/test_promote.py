"""Promote lets due jobs join the line, and upkeep returns when the next job is due."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def test_due_jobs_join_the_line_and_others_wait(db: Database) -> None:
    soon = db.enqueue("mail", delay=HOUR)
    db.enqueue("mail", delay=3 * HOUR)
    db.clock.advance(2 * HOUR)
    assert db.promote() == {soon}
    assert db.promote() == set()
    assert [claim.id for claim in db.claim("mail")] == [soon]


def test_the_earliest_jobs_are_promoted_first_up_to_the_limit(db: Database) -> None:
    jobs = [db.enqueue("mail", delay=n * HOUR) for n in (3, 1, 2)]
    db.clock.advance(4 * HOUR)
    assert db.promote(1) == {jobs[1]}
    assert db.promote(1) == {jobs[2]}
    assert db.promote(1) == {jobs[0]}


def test_locked_jobs_are_skipped(db: Database) -> None:
    held, free = db.enqueue("mail", delay=HOUR), db.enqueue("mail", delay=HOUR)
    db.clock.advance(HOUR)
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", held)
        assert db.promote() == {free}
    assert db.promote() == {held}


def test_upkeep_returns_when_the_next_job_is_due(db: Database) -> None:
    assert db.upkeep()[0]["next_due_in"] is None
    with db.transaction():
        db.enqueue("mail", delay=2 * HOUR)
        db.enqueue("mail", delay=HOUR)
        assert db.upkeep()[0]["next_due_in"] == HOUR


def test_upkeep_returns_how_many_jobs_it_promoted_and_recovered(db: Database) -> None:
    db.enqueue("mail", delay=HOUR)
    db.enqueue("mail")
    db.enqueue("mail", max_attempts=1)
    db.claim("mail", worker="first")
    db.clock.advance(HOUR)
    (row,) = db.upkeep()
    assert (row["promoted"], row["recovered"], row["failed"]) == (1, 1, 1)
    assert row["silent_workers"] == ["first"]


def test_one_upkeep_at_a_time(db: Database) -> None:
    other = db.session()
    with other.transaction():
        assert len(other.upkeep()) == 1
        assert db.upkeep() == []  # it does not wait
    assert len(db.upkeep()) == 1


def test_compacted_counts_stay_correct(db: Database) -> None:
    for _ in range(10):
        db.enqueue("mail")
        db.complete(db.claim("mail"))
    before = db.depth()
    assert db.value("select count(*) from finished_counts") == 10
    db.execute("select howdah.compact_counts()")
    assert db.value("select count(*) from finished_counts") == 1
    assert db.depth() == before == db.counted()


def test_upkeep_compacts_the_counts_when_there_are_many(db: Database) -> None:
    db.execute(
        "insert into finished_counts select today(), 'mail', 'completed', 1 "
        "from generate_series(1, 499)"
    )
    db.upkeep()
    assert db.value("select count(*) from finished_counts") == 499
    db.execute("insert into finished_counts values (today(), 'mail', 'completed', 1)")
    db.upkeep()
    assert db.rows("select jobs from finished_counts") == [{"jobs": 500}]
