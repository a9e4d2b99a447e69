"""Cancel ends a job whoever holds it, and its worker is told."""

from __future__ import annotations

from uuid import uuid4

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def test_a_pending_job_is_never_handed_out(db: Database) -> None:
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


def test_a_waiting_job_never_joins_the_line(db: Database) -> None:
    (job,) = db.enqueue_many([{"job_type": "mail", "delay": "1 hour"}])
    assert db.cancel(job) == {job}
    assert db.upkeep()[0]["next_due_in"] is None


def test_a_running_job_is_taken_from_its_worker(db: Database) -> None:
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


def test_its_handler_may_say_so(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    assert db.cancel_held(claims, "nobody is waiting") == {job}
    assert (db.state_of(job), db.job(job)["last_error"]) == (State.CANCELLED, "nobody is waiting")


def test_what_has_ended_or_never_was_is_left_alone(db: Database) -> None:
    done = db.enqueue("mail")
    db.complete(db.claim("mail"))
    live = db.enqueue("mail")
    assert db.cancel(done, live, uuid4()) == {live}
    assert db.state_of(done) is State.COMPLETED
    assert db.cancel() == set()
