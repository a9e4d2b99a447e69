"""queue_depth counts every job exactly, and never reads the history to do so."""

from __future__ import annotations

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def scans(db: Database, pattern: str) -> int:
    """How often tables were read by this session, as far as it has not reported it yet."""
    return db.value(
        "select coalesce(sum(coalesce(seq_scan, 0) + coalesce(idx_scan, 0)), 0) "
        "from pg_stat_xact_user_tables where relname like %s",
        pattern,
    )


def lead_a_few_lives(db: Database) -> None:
    for job_type in ("mail", "resize"):
        db.enqueue_many([{"job_type": job_type}] * 6)
        claims = db.claim(job_type, batch=5)
        db.complete(claims[:2])
        db.fail(claims[2:3])
        db.cancel(claims[3].id)
        db.start(claims[4:])


def test_every_type_and_state_is_counted(db: Database) -> None:
    lead_a_few_lives(db)
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


def test_what_is_gone_is_not_told(db: Database) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.requeue(job)
    assert db.depth() == {("mail", State.PENDING): 1}


def test_it_does_not_read_the_history(db: Database) -> None:
    lead_a_few_lives(db)
    with db.transaction():
        before = scans(db, "jobs_finished%")
        assert db.depth()
        assert scans(db, "jobs_finished%") == before
        assert db.counted()  # the slow way does, so the measure measures
        assert scans(db, "jobs_finished%") > before


def test_it_counts_what_a_transaction_has_done_so_far(db: Database) -> None:
    other = db.session()
    db.enqueue("mail")
    with db.transaction():
        db.complete(db.claim("mail"))
        assert db.depth() == {("mail", State.COMPLETED): 1}
        assert other.depth() == {("mail", State.PENDING): 1}
    assert other.depth() == {("mail", State.COMPLETED): 1}
