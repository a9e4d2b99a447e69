"""Complete records the end of a successful attempt."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah.states import State
from tests.support import Database

pytestmark = pytest.mark.engine


def test_a_completed_job_keeps_its_result_and_times(db: Database) -> None:
    job = db.enqueue("mail", {"to": "you"}, priority=150)
    claims = db.claim("mail", worker="first")
    db.progress(claims, 40, "sending")
    db.emit(claims, "sent")
    assert db.complete(claims, {"bytes": 1234}) == {job}
    row = db.job(job)
    assert (row["status"], row["progress"], row["result"]) == (
        State.COMPLETED,
        100,
        {"bytes": 1234},
    )
    assert (row["current_stage"], row["events_count"]) == ("sending", 1)
    assert (row["worker_id"], row["attempts"]) == ("first", 1)
    assert (row["data"], row["priority"], row["errors"]) == ({"to": "you"}, 150, [])
    assert row["created_at"] <= row["claimed_at"] <= row["completed_at"]


@pytest.mark.parametrize("result", [None, 0, False, "", [], {"a": None}, "text", 1.5])
def test_any_json_is_a_result(db: Database, result: object) -> None:
    job = db.enqueue("mail")
    db.complete(db.claim("mail"), result)
    assert db.job(job)["result"] == result


def test_each_job_of_a_batch_keeps_its_own_result(db: Database) -> None:
    jobs = [db.enqueue("mail") for _ in range(3)]
    claims = db.claim("mail")
    moved = db.column(
        "select howdah.complete('worker', %s::uuid[], %s::int[], %s::jsonb[])",
        [claim.id for claim in claims],
        [claim.attempts for claim in claims],
        ['{"n": 0}', None, "2"],
    )
    assert set(moved) == set(jobs)
    assert [db.job(job)["result"] for job in jobs] == [{"n": 0}, None, 2]


def test_the_start_is_computed_for_a_job_that_was_never_marked_running(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.clock.advance(timedelta(minutes=10))
    db.complete(claims, ran=timedelta(minutes=3))
    row = db.job(job)
    assert row["completed_at"] - row["started_at"] == timedelta(minutes=3)


def test_a_job_that_was_marked_running_keeps_its_start(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.start(claims, timedelta(seconds=2))
    started_at = db.job(job)["started_at"]
    db.clock.advance(timedelta(minutes=1))
    db.complete(claims, ran=timedelta(seconds=5))
    assert db.job(job)["started_at"] == started_at


def test_without_a_duration_the_start_is_the_claim(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.clock.advance(timedelta(minutes=1))
    db.complete(claims)
    row = db.job(job)
    assert row["started_at"] == row["claimed_at"] < row["completed_at"]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"])
def test_the_day_of_finishing_is_the_day_in_utc(db: Database, zone: str) -> None:
    db.execute(f"set timezone = '{zone}'")
    jobs = [db.enqueue("mail") for _ in range(3)]
    db.complete(db.claim("mail", batch=1))
    db.fail(db.claim("mail", batch=1))
    db.claim("mail", batch=1)
    db.plain("UPDATE jobs SET status='completed' WHERE status = 'claimed'")
    today = db.value("select (clock() at time zone 'utc')::date")
    assert {db.job(job)["finished_on"] for job in jobs} == {today}


def test_the_day_of_finishing_follows_the_clock(db: Database) -> None:
    job = db.enqueue("mail")
    claims = db.claim("mail")
    db.clock.advance(timedelta(days=2))
    db.complete(claims)
    tomorrow = db.value("select (now() at time zone 'utc')::date + 2")
    assert db.job(job)["finished_on"] == tomorrow
    assert db.value("select tableoid::regclass::text from jobs") == (
        f"jobs_finished_{tomorrow:%Y%m%d}"
    )
