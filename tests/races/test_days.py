"""Day partitions are created and dropped while others work: one session at a time, no errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Claimed, Database, Session
from tests.support.background import BackgroundCall
from tests.support.waiting import wait_until

pytestmark = pytest.mark.engine

DAY = timedelta(days=1)

DAY_CALLS: dict[str, Callable[[Session], list[str]]] = {
    "prune": lambda session: session.prune(),
    "prepare days": lambda session: session.prepare_days(),
}


@pytest.mark.parametrize("second", DAY_CALLS)
@pytest.mark.parametrize("first", DAY_CALLS)
def test_the_second_of_two_concurrent_calls_does_nothing(
    db: Database, first: str, second: str
) -> None:
    """Every worker prunes when it starts, and many start at once."""
    db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.clock.advance(30 * DAY)
    session, other = db.session(), db.session()
    with session.transaction():
        assert len(DAY_CALLS[first](session)) == 8
        second_call = BackgroundCall(lambda: DAY_CALLS[second](other))
        wait_until(
            lambda: second_call.over or db.blocked_by_a_lock(other),
            "the second call has ended or waits for a lock",
            pause=0.001,
        )
    assert second_call.result() == []
    assert db.depth() == db.counted()


ENDING: dict[str, Callable[[Session, list[Claimed]], set[UUID]]] = {
    "complete": lambda session, claims: session.complete(claims),
    "fail": lambda session, claims: session.fail(claims),
    "cancel": lambda session, claims: session.cancel(*(claim.id for claim in claims)),
    "emit": lambda session, claims: session.emit(claims, "news"),
    "plain complete": lambda session, claims: {
        claim.id
        for claim in claims
        if session.plain("UPDATE jobs SET status='completed' WHERE id=$1", claim.id)
    },
}


@pytest.mark.parametrize("verb", ENDING)
def test_a_job_that_ends_while_its_day_is_created_goes_to_that_day(db: Database, verb: str) -> None:
    """The day was not prepared, so the ending was about to go to the unprepared partition."""
    job = db.enqueue("mail")
    db.clock.advance(30 * DAY)
    claims = db.claim("mail")
    upkeep, worker = db.session(), db.session()
    with upkeep.transaction():
        assert len(upkeep.prepare_days()) == 8
        ending = BackgroundCall(lambda: ENDING[verb](worker, claims))
        db.wait_until_blocked(worker)
    assert ending.result() == {job}
    for parent in ("jobs_finished", "job_events"):
        assert db.value(f"select count(*) from {parent}_unprepared") == 0
    assert db.depth() == db.counted()


@pytest.mark.parametrize("verb", ["complete", "plain complete"])
def test_a_job_that_ends_while_days_are_dropped_waits_and_ends(db: Database, verb: str) -> None:
    for _ in range(2):
        db.enqueue("mail")
    db.fail(db.claim("mail", batch=1))
    db.clock.advance(30 * DAY)
    claims = db.claim("mail")
    upkeep, worker = db.session(), db.session()
    with upkeep.transaction():
        assert len(upkeep.prune()) == 8
        ending = BackgroundCall(lambda: ENDING[verb](worker, claims))
        db.wait_until_blocked(worker)
    assert ending.result() == {claims[0].id}
    assert db.counted() == {("mail", State.COMPLETED): 1} == db.depth()
