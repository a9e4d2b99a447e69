"""Claims meet other sessions: they never wait, never take what another took, never break."""

from __future__ import annotations

import pytest

from howdah.states import State
from tests.support import Database
from tests.support.aside import Aside

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


def test_a_claim_locks_what_it_takes_and_nothing_else(db: Database) -> None:
    """Locking a batch of each type and using one of all would starve everybody else."""
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
    """What one worker has only looked at is still there for the next."""
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


def test_a_claim_passes_by_a_job_that_is_being_cancelled(db: Database) -> None:
    gone, left = db.enqueue("mail"), db.enqueue("mail")
    other = db.session()
    with other.transaction():
        assert other.cancel(gone) == {gone}
        assert [claim.id for claim in db.claim("mail")] == [left]
    assert db.state_of(gone) is State.CANCELLED


def test_a_cancel_waits_for_the_claim_and_takes_the_job_from_it(db: Database) -> None:
    job = db.enqueue("mail")
    worker, person = db.session(), db.session()
    with worker.transaction():
        claims = worker.claim("mail", worker="first")
        cancel = Aside(lambda: person.cancel(job))
        db.wait_until_blocked(person)
    assert cancel.result() == {job}
    assert db.state_of(job) is State.CANCELLED
    assert worker.complete(claims) == set()


def test_a_claim_survives_a_plain_update_that_moves_a_row_under_it(db: Database) -> None:
    """PostgreSQL answers 40001 to whoever locks a row that an UPDATE moved to another partition.

    For that the claim must see the row, be held up, and lock it only after the UPDATE has
    committed. A lock on the index in the UPDATE's own transaction holds it up at the right place:
    a claim whose plan is made takes its snapshot first and opens the index after that.
    """
    worker, foreign = db.session(), db.session()
    for _ in range(2):
        worker.claim("mail")  # so that its plan is made
    jobs = [db.enqueue("mail") for _ in range(4)]
    with foreign.transaction():
        foreign.plain("UPDATE jobs SET status='cancelled' WHERE id=$1", jobs[1])
        # changes nothing, but asks for the index alone; LOCK TABLE takes no index
        foreign.execute("alter index jobs_ready set tablespace pg_default")
        claim = Aside(lambda: worker.claim("mail", worker="first"))
        db.wait_until_blocked(worker)
    assert [claimed.id for claimed in claim.result()] == [jobs[0], *jobs[2:]]
    assert db.state_of(jobs[1]) is State.CANCELLED
    assert db.depth() == db.counted()
