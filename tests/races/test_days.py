"""Days are made and dropped beside everybody's work: one at a time, and nobody hears of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Claimed, Database, Session
from tests.support.aside import Aside
from tests.support.database import DEADLINE

pytestmark = pytest.mark.engine

DAY = timedelta(days=1)

KEEPING: dict[str, Callable[[Session], list[str]]] = {
    "prune": lambda session: session.prune(),
    "prepare days": lambda session: session.prepare_days(),
}


@pytest.mark.parametrize("second", KEEPING)
@pytest.mark.parametrize("first", KEEPING)
def test_whoever_comes_second_has_nothing_to_do(db: Database, first: str, second: str) -> None:
    """Every worker prunes when it starts, and many start at once."""
    db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.clock.advance(30 * DAY)
    one, two = db.session(), db.session()
    with one.transaction():
        assert len(KEEPING[first](one)) == 8
        late = Aside(lambda: KEEPING[second](two))
        until = time.monotonic() + DEADLINE
        while not (late.over or db.blocked_by_a_lock(two)):
            assert time.monotonic() < until, "it neither ended nor came to a lock"
            time.sleep(0.001)
    assert late.result() == []
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
def test_what_ends_while_its_day_is_being_made_goes_there(db: Database, verb: str) -> None:
    """Nobody had prepared this day; the ending was on its way to the unprepared part."""
    job = db.enqueue("mail")
    db.clock.advance(30 * DAY)
    claims = db.claim("mail")
    keeper, worker = db.session(), db.session()
    with keeper.transaction():
        assert len(keeper.prepare_days()) == 8
        ending = Aside(lambda: ENDING[verb](worker, claims))
        db.wait_until_blocked(worker)
    assert ending.result() == {job}
    for parent in ("jobs_finished", "job_events"):
        assert db.value(f"select count(*) from {parent}_unprepared") == 0
    assert db.depth() == db.counted()


@pytest.mark.parametrize("verb", ["complete", "plain complete"])
def test_what_ends_while_days_are_being_dropped_waits_and_ends(db: Database, verb: str) -> None:
    for _ in range(2):
        db.enqueue("mail")
    db.fail(db.claim("mail", batch=1))
    db.clock.advance(30 * DAY)
    claims = db.claim("mail")
    keeper, worker = db.session(), db.session()
    with keeper.transaction():
        assert len(keeper.prune()) == 8
        ending = Aside(lambda: ENDING[verb](worker, claims))
        db.wait_until_blocked(worker)
    assert ending.result() == {claims[0].id}
    assert db.counted() == {("mail", State.COMPLETED): 1} == db.depth()
