"""Ordered keys: one job after the other in the order of enqueueing, whatever happens to each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def three(db: Database) -> list[UUID]:
    """Three jobs of one ordered key; the first is admitted."""
    db.execute("select howdah.set_type_limit('mail', 1, true)")
    jobs = [db.enqueue("mail", key="a") for _ in range(3)]
    db.admit()
    return jobs


def run_rest(db: Database) -> list[UUID]:
    """Run all jobs that are left, one by one; returns them in the order in which they ran."""
    ran: list[UUID] = []
    while claims := db.claim("mail"):
        assert len(claims) == 1
        ran.append(claims[0].id)
        db.complete(claims)
    return ran


def test_the_order_is_that_of_enqueueing_and_not_of_priority(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1, true)")
    jobs = [db.enqueue("mail", key="a", priority=p) for p in (1, 3, 2, 3, -(2**31), 2**31 - 1)]
    db.admit()
    assert run_rest(db) == jobs


BACK: dict[str, Callable[[Database, list[Claimed]], object]] = {
    "retry": lambda db, claims: db.retry(claims),
    "retry later": lambda db, claims: db.retry(claims, delay=HOUR),
    "release": lambda db, claims: db.release(claims),
    "snooze": lambda db, claims: db.release(claims, HOUR),
    "hand_back": lambda db, claims: db.hand_back(claims),
    "recover": lambda db, claims: db.clock.advance(HOUR),
    "plain": lambda db, claims: db.plain(
        "UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL WHERE id=$1",
        claims[0].id,
    ),
    "plain, later": lambda db, claims: db.plain(
        "UPDATE jobs SET status='pending', worker_id=NULL, run_at=now() + '1 hour' WHERE id=$1",
        claims[0].id,
    ),
}


@pytest.mark.parametrize("back", BACK)
def test_a_job_that_goes_back_blocks_those_behind_it(
    db: Database, three: list[UUID], back: str
) -> None:
    db.beat("worker")
    BACK[back](db, db.claim("mail"))
    db.upkeep()
    assert set(db.column("select admission from jobs where id = any(%s)", three[1:])) == {"slot"}
    db.clock.advance(2 * HOUR)
    db.upkeep()
    assert run_rest(db) == three


def test_a_reprioritised_job_keeps_its_place(db: Database, three: list[UUID]) -> None:
    db.execute("select howdah.reprioritise(%s, 1000)", three[2:])
    assert run_rest(db) == three


def test_run_now_ends_a_backoff(db: Database, three: list[UUID]) -> None:
    db.retry(db.claim("mail"), delay=HOUR)
    assert db.admission_of(three[0]) == "backoff"
    assert db.column("select howdah.run_now(%s)", three) == [three[0]]
    assert run_rest(db) == three


def test_a_cancelled_job_lets_the_next_one_go(db: Database, three: list[UUID]) -> None:
    db.cancel(three[0])
    db.cancel(three[1])
    assert run_rest(db) == [three[2]]


def test_a_job_that_is_cancelled_in_its_backoff_lets_the_next_one_go(
    db: Database, three: list[UUID]
) -> None:
    db.retry(db.claim("mail"), delay=HOUR)
    db.cancel(three[0])
    assert run_rest(db) == three[1:]


def test_a_failed_job_lets_the_next_one_go_and_comes_last_when_requeued(
    db: Database, three: list[UUID]
) -> None:
    db.fail(db.claim("mail"))
    db.requeue(three[0])
    db.admit()
    assert run_rest(db) == [*three[1:], three[0]]


def test_a_locked_job_blocks_those_behind_it(db: Database, three: list[UUID]) -> None:
    other = db.session()
    with other.transaction():
        other.execute("select from jobs_live where id = %s for update", three[1])
        db.complete(db.claim("mail"))
        assert db.claim("mail") == []
        assert db.admit() == 0
        assert db.state_of(three[2]) is State.PENDING
    assert db.admit() == 1
    assert run_rest(db) == three[1:]


def test_a_job_that_is_committed_late_goes_before_those_enqueued_after_it(db: Database) -> None:
    db.execute("select howdah.set_type_limit('mail', 1, true)")
    producer = db.session()
    with producer.transaction():
        late = producer.enqueue("mail", key="a")
        first = db.enqueue("mail", key="a")
        db.admit()
        claims = db.claim("mail")
        assert [claim.id for claim in claims] == [first]
    after = db.enqueue("mail", key="a")
    db.complete(claims)
    assert run_rest(db) == [late, after]


def test_a_scheduled_job_goes_first_when_it_is_due(db: Database, three: list[UUID]) -> None:
    db.beat(silent_after=DAY)
    later = db.enqueue("mail", key="a", delay=HOUR)
    last = db.enqueue("mail", key="a")
    claims = db.claim("mail")
    db.clock.advance(HOUR)
    db.upkeep()
    db.complete(claims)
    assert run_rest(db) == [*three[1:], later, last]
