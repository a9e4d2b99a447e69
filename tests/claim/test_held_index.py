"""A claim by howdah's workers writes no index; its jobs are found all the same.

Such a job enters the index jobs_held when `start` marks it as running. A job of a foreign worker
enters it when it is claimed. If a worker dies before `start`, recover reads the whole table once.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Claimed, Database
from tests.support.database import claims_of

pytestmark = pytest.mark.engine

SECOND = timedelta(seconds=1)
TIMEOUT = timedelta(minutes=5)
CLAIM = "select * from howdah.claim(%s, %s, array[%s], array[(-2147483648)::int], "
WHOLE_LINE = (
    "array['-infinity'::timestamptz], array['00000000-0000-0000-0000-000000000000'::uuid], "
    "array[2147483647])"
)
HELD_BY = "select held_by from jobs_live where id = %s"


def claim(db: Database, worker: str = "worker", batch: int = 10) -> list[Claimed]:
    """Claim as howdah's workers do."""
    return claims_of(db.rows(CLAIM + WHOLE_LINE, worker, batch, "mail"))


def held_by(db: Database, job: UUID) -> str | None:
    return db.value(HELD_BY, job)


def test_a_claim_writes_no_index(db: Database) -> None:
    """Every claimed row stays on its page, and that page has room for it."""
    db.enqueue_many([{"job_type": "mail", "data": {"text": "x" * 100}} for _ in range(500)])
    hot = "select pg_stat_get_xact_tuples_hot_updated('jobs_live'::regclass)"
    with db.transaction():
        before = db.value(hot)
        assert len(claim(db, batch=500)) == 500
        assert db.value(hot) - before == 500


def test_a_claimed_job_is_in_no_line_although_it_is_still_in_the_index(db: Database) -> None:
    first, second = db.enqueue("mail"), db.enqueue("mail")
    assert [c.id for c in claim(db, "first", 1)] == [first]
    assert held_by(db, first) is None
    assert [c.id for c in claim(db, "second")] == [second]
    assert claim(db, "third") == []
    assert db.claim("mail") == []
    assert db.column("select id from howdah.claim_next('fourth', 8, 'mail')") == []


def test_start_enters_a_job_in_the_index(db: Database) -> None:
    db.enqueue("mail")
    (job,) = claim(db, "me")
    assert db.start([job]) == {job.id}
    assert held_by(db, job.id) == "me"


@pytest.mark.parametrize("way", ["release", "retry", "hand_back", "plain", "requeue"])
def test_a_job_that_goes_back_is_in_line_again(db: Database, way: str) -> None:
    job = db.enqueue("mail")
    (held,) = claim(db)
    db.start([held])
    match way:
        case "release":
            db.release([held])
        case "retry":
            db.retry([held])
        case "hand_back":
            db.hand_back([held])
            db.clock.advance(2 * SECOND)
            db.execute("select howdah.promote()")
        case "requeue":
            db.fail([held])
            db.execute("select howdah.requeue(array[%s])", job)
        case _:
            db.plain(
                "UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL WHERE id=$1", job
            )
    assert held_by(db, job) is None
    assert [c.id for c in claim(db, "again")] == [job]


def test_jobs_of_foreign_workers_enter_the_index_at_once(db: Database) -> None:
    by_function, by_update = db.enqueue("mail", priority=150), db.enqueue("mail")
    db.claim("mail", worker="foreign", batch=1)
    db.plain(
        "UPDATE jobs SET status='claimed', worker_id='other', claimed_at=now() WHERE id=$1",
        by_update,
    )
    assert (held_by(db, by_function), held_by(db, by_update)) == ("foreign", "other")


def test_a_job_that_a_dead_worker_had_not_started_is_recovered(db: Database) -> None:
    job = db.enqueue("mail")
    db.beat("me", silent_after=SECOND)
    db.clock.advance(timedelta(minutes=11))  # its claim is not the first that is searched
    db.beat("me", silent_after=SECOND)
    claim(db, "me")
    db.clock.advance(2 * SECOND)
    assert db.recover_stale_jobs(TIMEOUT) == {job: State.PENDING}
    assert [c.id for c in claim(db, "another")] == [job]


def test_a_claim_that_came_after_its_worker_was_given_up_is_recovered(db: Database) -> None:
    """Nobody knows of it, so recover reads all jobs every ten minutes."""
    job = db.enqueue("mail")
    db.beat("me", silent_after=SECOND)
    db.clock.advance(2 * SECOND)
    assert db.recover_stale_jobs(TIMEOUT) == {}
    claim(db, "me")
    db.clock.advance(timedelta(minutes=9))
    assert db.recover_stale_jobs(TIMEOUT) == {}, "not yet"
    db.clock.advance(timedelta(minutes=2))
    assert db.recover_stale_jobs(TIMEOUT) == {job: State.PENDING}


def test_a_claim_of_a_worker_that_has_deregistered_is_recovered(db: Database) -> None:
    job = db.enqueue("mail")
    claim(db, "gone")
    db.deregister("gone")
    db.clock.advance(timedelta(minutes=11))
    assert db.recover_stale_jobs(TIMEOUT) == {job: State.PENDING}


def test_the_jobs_of_a_live_worker_are_left_alone(db: Database) -> None:
    db.enqueue("mail")
    db.beat("me", silent_after=SECOND)
    (job,) = claim(db, "me")
    for _ in range(3):
        db.clock.advance(timedelta(minutes=11))
        db.beat("me", silent_after=SECOND)
        assert db.recover_stale_jobs(TIMEOUT) == {}
    assert db.complete([job]) == {job.id}
