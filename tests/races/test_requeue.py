"""Requeue concurrent with retry, requeue and prune: a job exists at most once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database
from tests.support.background import BackgroundCall

pytestmark = pytest.mark.engine

DAY = timedelta(days=1)


def test_a_job_whose_failure_is_not_committed_is_not_requeued(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    claims = db.claim("mail")
    worker, client = db.session(), db.session()
    with worker.transaction():
        assert worker.retry(claims) == {job: State.FAILED}
        assert client.requeue(job) == set()
    assert client.requeue(job) == {job}
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


def test_a_late_retry_of_a_job_that_is_being_requeued_changes_nothing(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.cancel(job)
    worker, client = db.session(), db.session()
    with client.transaction():
        assert client.requeue(job) == {job}
        assert worker.retry(claims) == {}
    assert worker.retry(claims) == {}
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


def test_two_clients_requeue_a_job_and_one_moves_it(db: Database) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    first, second = db.session(), db.session()
    with first.transaction():
        assert first.requeue(job) == {job}
        late = BackgroundCall(lambda: second.requeue(job))
        db.wait_until_blocked(second)
    assert late.result() == set()
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


def test_prune_leaves_a_day_from_which_a_job_is_being_requeued(db: Database) -> None:
    job, other = db.enqueue("mail"), db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.clock.advance(30 * DAY)
    client = db.session()
    with client.transaction():
        assert client.requeue(job) == {job}
        assert [name for name in db.prune() if name.startswith("jobs_")] == []
    assert db.state_of(job) is State.PENDING
    assert len([name for name in db.prune() if name.startswith("jobs_")]) == 4
    assert db.rows("select from jobs where id = %s", other) == []
    assert db.counted() == {("mail", State.PENDING): 1} == db.depth()


@pytest.mark.parametrize("planned", [False, True], ids=["first call", "planned before"])
def test_a_requeue_that_waits_for_a_prune_finds_nothing(db: Database, planned: bool) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    upkeep, client = db.session(), db.session()
    if planned:
        client.requeue()
    db.clock.advance(30 * DAY)
    with upkeep.transaction():
        assert len(upkeep.prune()) == 8
        requeue = BackgroundCall(lambda: client.requeue(job))
        db.wait_until_blocked(client)
    assert requeue.result() == set()
    assert db.counted() == {} == db.depth()
