"""Retry puts a job back while it has attempts left, and fails it when it has none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def test_the_last_attempt_ends_as_failed(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=2)
    assert db.retry(db.claim("mail")) == {job: State.PENDING}
    assert db.retry(db.claim("mail")) == {job: State.FAILED}
    assert db.claim("mail") == []
    row = db.job(job)
    assert (row["status"], row["attempts"], row["last_error"]) == (State.FAILED, 2, "it broke")


def test_each_job_of_a_batch_is_retried_or_fails_by_its_own_attempts(db: Database) -> None:
    once = [db.enqueue("mail", max_attempts=1) for _ in range(2)]
    thrice = [db.enqueue("mail") for _ in range(2)]
    cancelled = db.enqueue("mail")
    claims = db.claim("mail")
    db.cancel(cancelled)
    assert db.retry(claims) == dict.fromkeys(once, State.FAILED) | dict.fromkeys(
        thrice, State.PENDING
    )


def test_a_delayed_retry_waits_and_an_undelayed_one_does_not(db: Database) -> None:
    now, later = db.enqueue("mail"), db.enqueue("mail")
    at_once, delayed = db.claim("mail")
    assert (at_once.id, delayed.id) == (now, later)
    db.retry([at_once])
    db.retry([delayed], delay=HOUR)
    assert [claim.id for claim in db.claim("mail")] == [now]
    db.clock.advance(HOUR)
    db.promote()
    assert [claim.id for claim in db.claim("mail")] == [later]


def test_a_retried_job_goes_to_the_end_of_its_line(db: Database) -> None:
    first, second = db.enqueue("mail"), db.enqueue("mail")
    urgent = db.enqueue("mail", priority=150)
    claims = db.claim("mail", batch=2)
    assert [claim.id for claim in claims] == [urgent, first]
    db.retry(claims)
    assert [claim.id for claim in db.claim("mail")] == [urgent, second, first]


def test_every_attempt_keeps_its_error(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=3)
    db.retry(db.claim("mail", worker="first"), "no route", traceback="line 1")
    claims = db.claim("mail", worker="second")
    db.start(claims)
    db.retry(claims, "refused")
    db.fail(db.claim("mail", worker="third"), "given up", "line 9")
    row = db.job(job)
    assert row["last_error"] == "given up"
    errors = [
        {key: error.get(key) for key in ("attempt", "worker_id", "error", "traceback")}
        for error in row["errors"]
    ]
    assert errors == [
        {"attempt": 1, "worker_id": "first", "error": "no route", "traceback": "line 1"},
        {"attempt": 2, "worker_id": "second", "error": "refused", "traceback": None},
        {"attempt": 3, "worker_id": "third", "error": "given up", "traceback": "line 9"},
    ]
    assert all(error["started_at"] <= error["ended_at"] for error in row["errors"])


def test_the_last_twenty_errors_are_kept(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=25)
    for number in range(1, 26):
        db.retry(db.claim("mail"), f"error {number}")
    errors = db.job(job)["errors"]
    assert [error["attempt"] for error in errors] == list(range(6, 26))
    assert errors[-1]["error"] == "error 25"


def test_a_retried_job_has_no_worker(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.start(claims)
    db.retry(claims)
    row = db.job(job)
    assert (row["worker_id"], row["claimed_at"], row["started_at"]) == (None, None, None)
    assert (row["attempts"], row["completed_at"]) == (1, None)


def test_a_failed_job_keeps_its_data_progress_and_error(db: Database) -> None:
    job = db.enqueue("mail", {"to": "you"})
    claims = db.claim("mail", worker="first")
    db.progress(claims, 60, "sending")
    db.emit(claims, "bounced")
    assert db.fail(claims, "mailbox full", "Traceback …") == {job}
    row = db.job(job)
    assert (row["status"], row["data"], row["progress"], row["current_stage"]) == (
        State.FAILED,
        {"to": "you"},
        60,
        "sending",
    )
    assert (row["last_error"], row["worker_id"], row["events_count"]) == (
        "mailbox full",
        "first",
        1,
    )
    assert row["errors"][0]["traceback"] == "Traceback …"
    assert row["completed_at"] is not None
    assert row["result"] is None
