"""queue_depth counts every job exactly, and never reads the history to do so."""

from __future__ import annotations

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def scans(db: Database, pattern: str) -> int:
    """Return how often this transaction has scanned the tables of this pattern."""
    return db.value(
        "select coalesce(sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0)), 0) "
        "from pg_stat_xact_user_tables where relname like %s",
        pattern,
    )


def make_jobs_in_every_state(db: Database) -> None:
    for job_type in ("mail", "resize"):
        db.enqueue_many([{"job_type": job_type}] * 6)
        claims = db.claim(job_type, batch=5)
        db.complete(claims[:2])
        db.fail(claims[2:3])
        db.cancel(claims[3].id)
        db.start(claims[4:])


def test_every_type_and_state_is_counted(db: Database) -> None:
    make_jobs_in_every_state(db)
    assert db.depth() == {
        (job_type, state): jobs
        for job_type in ("mail", "resize")
        for state, jobs in {
            State.PENDING: 1,
            State.RUNNING: 1,
            State.COMPLETED: 2,
            State.FAILED: 1,
            State.CANCELLED: 1,
        }.items()
    }
    assert db.depth() == db.counted()


def test_a_state_without_jobs_is_not_listed(db: Database) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.requeue(job)
    assert db.depth() == {("mail", State.PENDING): 1}


def test_queue_depth_does_not_read_the_history(db: Database) -> None:
    make_jobs_in_every_state(db)
    with db.transaction():
        before = scans(db, "jobs_finished%")
        assert db.depth()
        assert scans(db, "jobs_finished%") == before
        assert db.counted()  # counting the rows does, so the scans are seen
        assert scans(db, "jobs_finished%") > before


def test_queue_depth_includes_changes_of_its_own_transaction(db: Database) -> None:
    other = db.session()
    db.enqueue("mail")
    with db.transaction():
        db.complete(db.claim("mail"))
        assert db.depth() == {("mail", State.COMPLETED): 1}
        assert other.depth() == {("mail", State.PENDING): 1}
    assert other.depth() == {("mail", State.COMPLETED): 1}
