"""A worker that was given up for lost must not settle a job that moved on.

The first worker claims and is silent; the job is recovered; a second worker claims it; then the
first one reports.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Claimed, Database

pytestmark = pytest.mark.engine

LEASE = timedelta(seconds=30)

REPORTS: dict[str, Callable[[Database, list[Claimed]], set[UUID]]] = {
    "start": lambda db, claims: db.start(claims),
    "progress": lambda db, claims: db.progress(claims, 90, "nearly"),
    "emit": lambda db, claims: db.emit(claims, "frame"),
    "complete": lambda db, claims: db.complete(claims, {"bytes": 1}),
    "retry": lambda db, claims: set(db.retry(claims)),
    "fail": lambda db, claims: db.fail(claims),
    "release": lambda db, claims: db.release(claims),
    "cancel": lambda db, claims: db.cancel_held(claims),
}


@pytest.mark.parametrize("report", REPORTS)
def test_a_late_worker_changes_nothing(db: Database, report: str) -> None:
    job = db.enqueue("mail")
    first = db.claim("mail", worker="first")

    db.clock.advance(LEASE)
    db.recover_stale_jobs(LEASE)
    second = db.claim("mail", worker="second")
    before = db.job(job)

    assert REPORTS[report](db, first) == set()
    assert db.job(job) == before
    assert db.complete(second) == {job}
    assert db.state_of(job) is State.COMPLETED


@pytest.mark.parametrize("report", REPORTS)
def test_a_worker_that_claimed_the_job_again_cannot_use_its_old_lease(
    db: Database, report: str
) -> None:
    job = db.enqueue("mail")
    old = db.claim("mail", worker="first")
    db.retry(old)
    new = db.claim("mail", worker="first")
    before = db.job(job)
    assert REPORTS[report](db, old) == set()
    assert db.job(job) == before
    assert db.complete(new) == {job}


@pytest.mark.parametrize("report", REPORTS)
def test_an_old_lease_is_void_after_a_requeue(db: Database, report: str) -> None:
    job = db.enqueue("mail")
    old = db.claim("mail", worker="first")
    db.fail(old)
    db.requeue(job)
    new = db.claim("mail", worker="first")
    before = db.job(job)
    assert REPORTS[report](db, old) == set()
    assert db.job(job) == before
    assert db.complete(new) == {job}


def test_only_the_stale_leases_of_a_batch_are_refused(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(4)]
    claims = db.claim("mail")
    db.cancel(jobs[1])
    db.retry([claims[2]])
    assert db.complete(claims) == {jobs[0], jobs[3]}
    assert [db.state_of(job) for job in jobs] == [
        State.COMPLETED,
        State.CANCELLED,
        State.PENDING,
        State.COMPLETED,
    ]


def test_settling_twice_has_no_further_effect(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    assert db.complete([*claims, *claims]) == {job}
    assert db.complete(claims) == set()
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_settling_nothing_moves_nothing(db: Database) -> None:
    db.enqueue("mail")
    db.claim("mail")
    before = db.rows("select * from jobs")
    for report in REPORTS.values():
        assert report(db, []) == set()
    assert db.rows("select * from jobs") == before
