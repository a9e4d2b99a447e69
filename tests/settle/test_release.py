"""Release returns a job to the line as if it had never been claimed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)


def test_the_attempt_is_not_counted(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    for _ in range(3):
        claims = db.claim("mail")
        assert [claim.attempts for claim in claims] == [1]
        assert db.release(claims) == {job}
        assert db.job(job)["attempts"] == 0
    assert db.retry(db.claim("mail")) == {job: State.FAILED}


def test_the_job_keeps_its_place_in_line(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(4)]
    claims = db.claim("mail", batch=2)
    ready_at = db.value("select ready_at from jobs where id = %s", jobs[1])
    db.release([claims[1]])
    assert db.value("select ready_at from jobs where id = %s", jobs[1]) == ready_at
    db.release([claims[0]])
    assert [claim.id for claim in db.claim("mail")] == jobs


def test_the_row_is_as_before_the_claim(db: Database) -> None:
    job = db.enqueue("mail")
    before = db.job(job)
    claims = db.claim("mail")
    db.start(claims)
    db.release(claims)
    assert db.job(job) == before


def test_a_delayed_release_returns_the_job_later(db: Database) -> None:
    job = db.enqueue("mail")
    db.release(db.claim("mail"), HOUR)
    assert db.claim("mail") == []
    db.clock.advance(HOUR)
    db.promote()
    assert [(claim.id, claim.attempts) for claim in db.claim("mail")] == [(job, 1)]


def test_a_promoted_job_keeps_its_place_too(db: Database) -> None:
    late = db.enqueue("mail", delay=HOUR)
    db.clock.advance(HOUR)
    db.promote()
    ready_at = db.job(late)["ready_at"]
    db.release(db.claim("mail"))
    assert db.job(late)["ready_at"] == ready_at
