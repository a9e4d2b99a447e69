"""Requeue makes a failed or cancelled job pending again."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def test_a_failed_job_runs_again_and_keeps_its_errors_and_events(db: Database) -> None:
    job = db.enqueue("mail", {"to": "you"}, priority=150, max_attempts=1)
    claims = db.claim("mail")
    db.progress(claims, 60, "sending")
    db.emit(claims, "bounced")
    db.fail(claims, "mailbox full")
    created = db.job(job)["created_at"]
    assert db.requeue(job) == {job}
    row = db.job(job)
    assert (row["status"], row["data"], row["priority"], row["created_at"]) == (
        State.PENDING,
        {"to": "you"},
        150,
        created,
    )
    assert (row["progress"], row["current_stage"], row["completed_at"]) == (0, None, None)
    assert (row["attempts"], row["max_attempts"], row["events_count"]) == (1, 2, 1)
    assert (row["last_error"], len(row["errors"])) == ("mailbox full", 1)
    (claim,) = db.claim("mail")
    assert (claim.id, claim.attempts) == (job, 2)
    db.emit([claim], "sent")
    assert db.column("select number from job_events where job_id = %s order by 1", job) == [1, 2]
    assert db.complete([claim]) == {job}


def test_a_requeue_gives_the_requested_attempts(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    db.fail(db.claim("mail"))
    db.requeue(job, attempts=2)
    assert db.retry(db.claim("mail")) == {job: State.PENDING}
    assert db.retry(db.claim("mail")) == {job: State.FAILED}


def test_a_cancelled_job_can_be_requeued(db: Database) -> None:
    job = db.enqueue("mail")
    db.cancel(job)
    assert db.requeue(job) == {job}
    assert len(db.claim("mail")) == 1


def test_live_completed_and_unknown_jobs_are_not_changed(db: Database) -> None:
    done = db.enqueue("mail")
    db.complete(db.claim("mail"))
    live = db.enqueue("mail")
    failed = db.enqueue("other")
    db.fail(db.claim("other"))
    assert db.requeue(done, live, failed, uuid4()) == {failed}
    assert (db.state_of(done), db.state_of(live)) == (State.COMPLETED, State.PENDING)
    assert db.depth() == db.counted()


def test_a_requeued_job_goes_to_the_end_of_its_line(db: Database) -> None:
    first = db.enqueue("mail")
    db.fail(db.claim("mail"))
    second = db.enqueue("mail")
    db.requeue(first)
    assert [claim.id for claim in db.claim("mail")] == [second, first]


@pytest.mark.parametrize("attempts", [0, -1, None])
def test_a_requeue_needs_at_least_one_attempt(db: Database, attempts: int | None) -> None:
    job = db.enqueue("mail")
    db.cancel(job)
    with pytest.raises(psycopg.Error, match="p_attempts must be at least 1"):
        db.rows("select howdah.requeue(array[%s], %s::int)", job, attempts)
    assert db.state_of(job) is State.CANCELLED
