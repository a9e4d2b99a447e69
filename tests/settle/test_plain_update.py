"""A foreign worker that settles by plain UPDATE also gets the columns that it did not set.

These are the statements of the contract, word for word, over psycopg.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine

HOUR = timedelta(hours=1)

COMPLETE = "UPDATE jobs SET status='completed', progress=100, completed_at=now() WHERE id=$1"
FAIL = """
    UPDATE jobs SET status = CASE WHEN attempts >= max_attempts THEN 'failed' ELSE 'pending' END,
    last_error=$2, worker_id=NULL, claimed_at=NULL WHERE id=$1
"""
RECOVER = """
    UPDATE jobs SET status='pending', worker_id=NULL, claimed_at=NULL WHERE status IN
    ('claimed','running') AND claimed_at < now() - $1::interval AND attempts < max_attempts
"""


def test_complete(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    assert db.plain(COMPLETE, job) == 1
    row = db.job(job)
    assert (row["status"], row["progress"]) == (State.COMPLETED, 100)
    assert row["completed_at"] is not None
    assert row["finished_on"] == db.value("select today()")
    assert db.complete(claims) == set()
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_fail_with_attempts_left_puts_the_job_back_in_line(db: Database) -> None:
    job = db.enqueue("mail")
    db.claim("mail")
    assert db.plain(FAIL, job, "no route") == 1
    row = db.job(job)
    assert (row["status"], row["last_error"], row["worker_id"]) == (
        State.PENDING,
        "no route",
        None,
    )
    assert [(claim.id, claim.attempts) for claim in db.claim("mail")] == [(job, 2)]


def test_fail_on_the_last_attempt_ends_the_job(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    db.claim("mail")
    assert db.plain(FAIL, job, "no route") == 1
    row = db.job(job)
    assert (row["status"], row["last_error"]) == (State.FAILED, "no route")
    assert row["completed_at"] is not None  # the statement did not set it
    assert row["ready_at"] is None
    assert row["finished_on"] == db.value("select today()")
    assert db.value("select tableoid::regclass::text from jobs") == (
        f"jobs_finished_{row['finished_on']:%Y%m%d}"
    )
    assert db.depth() == {("mail", State.FAILED): 1} == db.counted()
    assert db.requeue(job) == {job}


def test_the_day_of_finishing_is_the_day_it_happened(db: Database) -> None:
    done, failed = db.enqueue("mail"), db.enqueue("mail", max_attempts=1)
    db.claim("mail")
    db.clock.advance(timedelta(days=2))
    db.plain(COMPLETE, done)
    db.plain(FAIL, failed, "no route")
    assert (
        db.job(done)["finished_on"] == db.value("select today()") == db.job(failed)["finished_on"]
    )
    assert db.column("select distinct day from finished_counts") == [db.value("select today()")]


def test_the_start_of_an_attempt_is_cleared_for_the_next(db: Database) -> None:
    job = db.enqueue("mail")
    db.claim("mail")
    db.plain("UPDATE jobs SET status='running', started_at=now() WHERE id=$1", job)
    db.plain(FAIL, job, "no route")
    db.claim("mail")
    assert db.job(job)["started_at"] is None


def test_recover_takes_stale_jobs_and_skips_last_attempts(db: Database) -> None:
    again = db.enqueue("mail")
    last = db.enqueue("mail", max_attempts=1)
    db.claim("mail")
    db.execute("update jobs set claimed_at = now() - interval '2 hours'")
    fresh = db.enqueue("mail")
    db.claim("mail")
    assert db.plain(RECOVER, HOUR) == 1
    assert [db.state_of(job) for job in (again, last, fresh)] == [
        State.PENDING,
        State.CLAIMED,
        State.CLAIMED,
    ]
    assert [(claim.id, claim.attempts) for claim in db.claim("mail")] == [(again, 2)]


def test_a_job_put_back_keeps_its_place(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(3)]
    db.claim("mail", batch=1)
    db.plain(FAIL, jobs[0], "no route")
    assert [claim.id for claim in db.claim("mail")] == jobs


def test_a_foreign_worker_can_mark_its_job_as_running(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    assert db.plain("UPDATE jobs SET status='running', started_at=now() WHERE id=$1", job) == 1
    assert db.plain("UPDATE jobs SET progress=$2, current_stage=$3 WHERE id=$1", job, 40, "x") == 1
    assert db.state_of(job) is State.RUNNING
    assert db.complete(claims) == {job}


def test_setting_only_the_status_to_pending_clears_the_other_columns(db: Database) -> None:
    job = db.enqueue("mail")
    db.claim("mail")
    db.plain("UPDATE jobs SET status='pending' WHERE id=$1", job)
    row = db.job(job)
    assert (row["worker_id"], row["claimed_at"]) == (None, None)
    assert [claim.id for claim in db.claim("mail")] == [job]


def test_a_later_run_at_takes_the_job_out_of_the_line(db: Database) -> None:
    job = db.enqueue("mail")
    db.claim("mail")
    db.execute(
        "update jobs set status = 'pending', run_at = now() + %s, worker_id = null where id = %s",
        HOUR,
        job,
    )
    assert db.claim("mail") == []
    db.clock.advance(HOUR)
    assert db.promote() == {job}
    assert len(db.claim("mail")) == 1


def test_a_pending_job_can_be_delayed_and_made_ready_again(db: Database) -> None:
    job = db.enqueue("mail")
    db.execute("update jobs set run_at = now() + %s where id = %s", HOUR, job)
    assert db.claim("mail") == []
    db.execute("update jobs set run_at = null where id = %s", job)
    assert [claim.id for claim in db.claim("mail")] == [job]


def test_a_new_priority_changes_the_place_in_line(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(3)]
    db.plain("UPDATE jobs SET priority=150 WHERE id=$1", jobs[2])
    assert [claim.id for claim in db.claim("mail")] == [jobs[2], *jobs[:2]]


def test_a_failed_job_can_be_made_pending_again(db: Database) -> None:
    job = db.enqueue("mail", max_attempts=1)
    db.fail(db.claim("mail"))
    assert db.plain("UPDATE jobs SET status='pending' WHERE id=$1", job) == 1
    row = db.job(job)
    assert (row["worker_id"], row["claimed_at"], row["completed_at"]) == (None, None, None)
    assert (row["attempts"], row["max_attempts"]) == (1, 2)
    assert db.depth() == {("mail", State.PENDING): 1} == db.counted()
    (claim,) = db.claim("mail")
    assert (claim.id, claim.attempts) == (job, 2)
    assert db.retry([claim]) == {job: State.FAILED}


def test_a_job_whose_final_state_is_changed_by_hand_is_counted_once(db: Database) -> None:
    job = db.enqueue("mail")
    db.fail(db.claim("mail"))
    db.execute("alter table jobs_finished disable trigger guard_update")
    db.plain("UPDATE jobs SET status='cancelled' WHERE id=$1", job)
    assert db.depth() == {("mail", State.CANCELLED): 1} == db.counted()


@pytest.mark.parametrize("relation", ["jobs", "jobs_finished"])
def test_deleted_history_is_not_counted(db: Database, relation: str) -> None:
    ended: list[UUID] = [db.enqueue("mail") for _ in range(3)]
    db.complete(db.claim("mail"))
    db.execute(f"delete from {relation} where id = any(%s)", ended[:2])
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_an_update_of_many_rows_fills_in_all_of_them(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 20)
    db.claim("mail", batch=20)
    assert db.plain("UPDATE jobs SET status='failed' WHERE status='claimed'") == 20
    rows = db.rows("select completed_at, finished_on, ready_at from jobs")
    assert all(row["completed_at"] and row["finished_on"] and not row["ready_at"] for row in rows)
    assert db.depth() == {("mail", State.FAILED): 20} == db.counted()
