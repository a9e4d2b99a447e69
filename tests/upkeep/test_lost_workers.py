"""A job that loses one worker after another fails, however many attempts it allows.

No job has more attempts than the administrator allows.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

SILENCE = timedelta(seconds=15)


def lose(db: Database, worker: str) -> None:
    """Let a worker claim every job and then stop beating."""
    db.beat(worker, silent_after=SILENCE)
    assert db.claim("mail", worker=worker)
    db.clock.advance(SILENCE * 2)
    db.recover_stale_jobs()


def error_of(db: Database, job: UUID) -> str:
    return db.value("select last_error::text from jobs where id = %s", job)


def test_a_job_fails_after_five_lost_workers_in_a_row(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1000)
    for n in range(4):
        lose(db, f"worker {n}")
        assert db.state_of(job) is State.PENDING
    lose(db, "worker 4")
    assert db.state_of(job) is State.FAILED
    assert "worker 4 went silent" in error_of(db, job)
    assert "5 workers in a row" in error_of(db, job)


def test_an_attempt_that_failed_by_itself_resets_the_count(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1000)
    for n in range(4):
        lose(db, f"worker {n}")
    db.retry(db.claim("mail", worker="alive"), "failed by itself")
    for n in range(4):
        lose(db, f"later {n}")
        assert db.state_of(job) is State.PENDING
    lose(db, "the last")
    assert db.state_of(job) is State.FAILED


def test_a_requeued_job_fails_after_one_more_lost_worker(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1000)
    for n in range(5):
        lose(db, f"worker {n}")
    assert db.requeue(job, attempts=100) == {job}
    lose(db, "again")
    assert db.state_of(job) is State.FAILED


def test_the_number_of_lost_workers_is_an_option(db: Database) -> None:
    db.execute("update options set value = '2' where name = 'max_lost_workers'")
    job = db.enqueue("mail", max_attempts=1000)
    lose(db, "first")
    assert db.state_of(job) is State.PENDING
    lose(db, "second")
    assert db.state_of(job) is State.FAILED


def test_the_error_names_the_last_attempt(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    lose(db, "first")
    assert error_of(db, job).endswith("on its last attempt")


# ── the most attempts ──


@pytest.mark.parametrize(
    "sql",
    [
        "select enqueue('mail', p_max_attempts => 1001)",
        """select enqueue_many('[{"job_type": "mail", "max_attempts": 1001}]')""",
        "insert into jobs (job_type, max_attempts) values ('mail', 1001)",
        "call enqueue_now('mail', '{}', 100, null, 1001, new_id(), null)",
    ],
)
def test_more_attempts_than_allowed_are_refused(db: Database, sql: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        db.execute(sql)
    assert refused.value.sqlstate == "22023"
    assert "max_attempts is 1001; the limit is 1000" in str(refused.value)
    assert "max_attempts_limit" in (refused.value.diag.message_hint or "")
    assert db.counted() == {}


def test_a_lowered_limit_applies_to_existing_jobs(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=100)
    db.execute("update options set value = '3' where name = 'max_attempts_limit'")
    for _ in range(2):
        db.retry(db.claim("mail"), "again")
        assert db.state_of(job) is State.PENDING
    db.retry(db.claim("mail"), "again")
    assert db.state_of(job) is State.FAILED
    assert db.requeue(job, attempts=50) == {job}, "a requeue always gives one more attempt"
    db.retry(db.claim("mail"), "and again")
    assert db.state_of(job) is State.FAILED


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_attempts_limit", "2"), ("max_lost_workers", "0"), ("max_lost_workers", "21")],
)
def test_an_invalid_limit_is_refused(db: Database, name: str, value: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute("update options set value = %s where name = %s", value, name)
