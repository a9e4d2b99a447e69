"""Concurrent claims never wait, take no job twice, and never fail."""

from __future__ import annotations

import pytest

from howdah.states import State
from tests.support import Database
from tests.support.background import BackgroundCall

pytestmark = pytest.mark.engine


def test_two_claims_share_the_line_without_waiting(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(4)]
    other = db.session()
    with other.transaction():
        assert [claim.id for claim in other.claim("mail", worker="first", batch=2)] == jobs[:2]
        assert [claim.id for claim in db.claim("mail", worker="second", batch=2)] == jobs[2:]


def test_a_claim_that_was_rolled_back_leaves_its_jobs_to_others(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(2)]
    other = db.session()
    with other.rolled_back():
        assert len(other.claim("mail", worker="first")) == 2
        assert db.claim("mail", worker="second") == []
    assert [(c.id, c.attempts) for c in db.claim("mail", worker="second")] == [(j, 1) for j in jobs]


def test_a_claim_locks_only_the_jobs_it_takes(db: Database) -> None:
    """To lock a batch of each type and use only one would starve other workers."""
    db.execute(
        "insert into jobs_live (job_type, ready_at) "
        "select 'type-' || n % 20, timestamptz '2026-01-01' + n * interval '1 second' "
        "from generate_series(1, 1000) as n"
    )
    types = [f"type-{n}" for n in range(20)]
    other = db.session()
    with other.transaction():
        assert len(other.claim(*types, worker="first", batch=50)) == 50
        free = db.column("select id from jobs_live where worker_id is null for update skip locked")
        assert len(free) == 950


def test_a_claim_under_way_does_not_make_another_take_less_urgent_jobs(db: Database) -> None:
    """A job that one worker only read can be claimed by the next."""
    explicit = [db.enqueue(t, priority=150) for t in ("report", "thumbnail", "thumbnail")]
    usual = [db.enqueue("transcode") for _ in range(4)]
    for _ in range(5):
        db.enqueue("reindex", priority=30)
    types = ("report", "thumbnail", "transcode", "reindex")
    other = db.session()
    with other.transaction():
        first = other.claim(*types, worker="first", batch=3)
        assert [claim.id for claim in first] == explicit
        assert [claim.id for claim in db.claim(*types, worker="second", batch=4)] == usual


def test_a_claim_skips_a_job_that_is_being_cancelled(db: Database) -> None:
    cancelled, pending = db.enqueue("mail"), db.enqueue("mail")
    other = db.session()
    with other.transaction():
        assert other.cancel(cancelled) == {cancelled}
        assert [claim.id for claim in db.claim("mail")] == [pending]
    assert db.state_of(cancelled) is State.CANCELLED


def test_a_cancel_waits_for_the_claim_and_takes_the_job_from_it(db: Database) -> None:
    job = db.enqueue("mail")
    worker, client = db.session(), db.session()
    with worker.transaction():
        claims = worker.claim("mail", worker="first")
        cancel = BackgroundCall(lambda: client.cancel(job))
        db.wait_until_blocked(client)
    assert cancel.result() == {job}
    assert db.state_of(job) is State.CANCELLED
    assert worker.complete(claims) == set()


def test_a_claim_survives_a_plain_update_that_moves_a_row_meanwhile(db: Database) -> None:
    """PostgreSQL raises 40001 when a session locks a row that an UPDATE moved to another partition.

    For that the claim must see the row, wait, and lock it only after the UPDATE has committed. A
    lock on the index in the UPDATE's own transaction makes it wait at the right place: a claim
    with a cached plan takes its snapshot first and opens the index after that.
    """
    worker, foreign = db.session(), db.session()
    for _ in range(2):
        worker.claim("mail")  # caches the plan
    jobs = [db.enqueue("mail") for _ in range(4)]
    with foreign.transaction():
        foreign.plain("UPDATE jobs SET status='cancelled' WHERE id=$1", jobs[1])
        # changes nothing, but locks the index alone; LOCK TABLE cannot lock an index
        foreign.execute("alter index jobs_ready set tablespace pg_default")
        claim = BackgroundCall(lambda: worker.claim("mail", worker="first"))
        db.wait_until_blocked(worker)
    assert [claimed.id for claimed in claim.result()] == [jobs[0], *jobs[2:]]
    assert db.state_of(jobs[1]) is State.CANCELLED
    assert db.depth() == db.counted()
