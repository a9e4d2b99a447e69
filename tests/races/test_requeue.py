"""Requeue meets retry, requeue and prune: a job lives once or is gone, never both."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database
from tests.support.aside import Aside

pytestmark = pytest.mark.engine

DAY = timedelta(days=1)


def test_what_is_failing_at_this_moment_is_not_requeued_yet(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    claims = db.claim("mail")
    worker, person = db.session(), db.session()
    with worker.transaction():
        assert worker.retry(claims) == {job: State.FAILED}
        assert person.requeue(job) == set()
    assert person.requeue(job) == {job}
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


def test_a_late_retry_of_a_job_that_is_being_requeued_changes_nothing(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.cancel(job)
    worker, person = db.session(), db.session()
    with person.transaction():
        assert person.requeue(job) == {job}
        assert worker.retry(claims) == {}
    assert worker.retry(claims) == {}
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


def test_two_people_requeue_and_the_job_comes_back_once(db: Database) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    one, two = db.session(), db.session()
    with one.transaction():
        assert one.requeue(job) == {job}
        late = Aside(lambda: two.requeue(job))
        db.wait_until_blocked(two)
    assert late.result() == set()
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


def test_prune_leaves_a_day_from_which_a_job_is_being_requeued(db: Database) -> None:
    job, other = db.enqueue("mail"), db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.clock.advance(30 * DAY)
    person = db.session()
    with person.transaction():
        assert person.requeue(job) == {job}
        assert [name for name in db.prune() if name.startswith("jobs_")] == []
    assert db.state_of(job) is State.PENDING
    assert len([name for name in db.prune() if name.startswith("jobs_")]) == 4
    assert db.rows("select from jobs where id = %s", other) == []
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


@pytest.mark.parametrize("planned", [False, True], ids=["first call", "planned before"])
def test_a_requeue_that_waits_for_a_prune_finds_nothing(db: Database, planned: bool) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    keeper, person = db.session(), db.session()
    if planned:
        person.requeue()
    db.clock.advance(30 * DAY)
    with keeper.transaction():
        assert len(keeper.prune()) == 8
        requeue = Aside(lambda: person.requeue(job))
        db.wait_until_blocked(person)
    assert requeue.result() == set()
    assert db.counted() == {} == db.depth()
