"""Cancel ends a job even if a worker holds it, and the next beat tells the worker."""

from __future__ import annotations

from uuid import uuid4

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def test_a_cancelled_pending_job_is_never_claimed(db: Database) -> None:
    job, other = db.enqueue("mail"), db.enqueue("mail")
    assert db.cancel(job, reason="changed my mind") == {job}
    assert [claim.id for claim in db.claim("mail")] == [other]
    row = db.job(job)
    assert (row["status"], row["last_error"], row["errors"]) == (
        State.CANCELLED,
        "changed my mind",
        [],
    )
    assert (row["started_at"], row["progress"]) == (None, 0)
    assert row["completed_at"] is not None


def test_a_cancelled_waiting_job_never_joins_the_line(db: Database) -> None:
    (job,) = db.enqueue_many([{"job_type": "mail", "delay": "1 hour"}])
    assert db.cancel(job) == {job}
    assert db.upkeep()[0]["next_due_in"] is None


def test_a_worker_loses_a_running_job_that_is_cancelled(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail", worker="first")
    db.start(claims)
    assert db.beat("first", claims) == set()
    assert db.cancel(job, reason="too late") == {job}
    assert db.beat("first", claims) == {job}
    assert db.complete(claims) == set()
    row = db.job(job)
    assert (row["status"], row["last_error"], row["worker_id"]) == (
        State.CANCELLED,
        "too late",
        "first",
    )
    assert [error["error"] for error in row["errors"]] == ["too late"]


def test_a_worker_can_cancel_its_own_job(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    assert db.cancel_held(claims, "not needed") == {job}
    assert (db.state_of(job), db.job(job)["last_error"]) == (State.CANCELLED, "not needed")


def test_ended_and_unknown_jobs_are_not_changed(db: Database) -> None:
    done = db.enqueue("mail")
    db.complete(db.claim("mail"))
    live = db.enqueue("mail")
    assert db.cancel(done, live, uuid4()) == {live}
    assert db.state_of(done) is State.COMPLETED
    assert db.cancel() == set()
