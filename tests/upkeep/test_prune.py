"""Prune drops whole days: it drops a day's tables and never deletes single rows."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Database
from tests.upkeep.day_partitions import DAY, finish_one, name, today

pytestmark = pytest.mark.engine


def finish_daily(db: Database, days: int) -> list[UUID]:
    """Finish one job on each day and prepare each day as upkeep does."""
    jobs = [finish_one(db)]
    for _ in range(days):
        db.clock.advance(DAY)
        db.prepare_days()
        jobs.append(finish_one(db))
    return jobs


def test_a_week_is_kept_by_default(db: Database) -> None:
    jobs = finish_daily(db, 9)
    first = today(db) - 9 * DAY
    dropped = db.prune()
    assert dropped == [
        name(parent, day)
        for parent in ("jobs_finished", "job_events")
        for day in (first, first + DAY)
    ]
    assert {row["id"] for row in db.rows("select id from jobs")} == set(jobs[2:])
    assert set(db.column("select job_id from job_events")) == set(jobs[2:])
    assert db.depth() == {("mail", State.COMPLETED): 8} == db.counted()
    assert db.prune() == []


def test_the_time_to_keep_is_an_option(db: Database) -> None:
    jobs = finish_daily(db, 5)
    db.execute("update options set value = '2 days' where name = 'keep_finished'")
    db.execute("update options set value = '4 days' where name = 'keep_events'")
    db.prune()
    assert {row["id"] for row in db.rows("select id from jobs")} == set(jobs[-3:])
    assert set(db.column("select job_id from job_events")) == set(jobs[-5:])
    assert db.depth() == db.counted()


def test_the_time_to_keep_can_be_an_argument(db: Database) -> None:
    jobs = finish_daily(db, 2)
    db.prune(timedelta())
    assert {row["id"] for row in db.rows("select id from jobs")} == {jobs[-1]}
    with pytest.raises(psycopg.Error, match="p_keep must not be negative"):
        db.prune(-DAY)
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_live_jobs_are_never_pruned(db: Database) -> None:
    old = db.enqueue("old")
    held = db.enqueue("held")
    claims = db.claim("held")
    waiting = db.enqueue("waiting", delay=400 * DAY)
    db.clock.advance(365 * DAY)
    db.prune(timedelta())
    assert {row["id"] for row in db.rows("select id from jobs")} == {old, held, waiting}
    assert db.complete(claims) == {held}


def test_old_rows_of_unprepared_days_are_pruned_too(db: Database) -> None:
    db.clock.advance(30 * DAY)  # far after the last prepared day
    finish_one(db)
    assert db.column("select tableoid::regclass::text from jobs") == ["jobs_finished_unprepared"]
    db.clock.advance(9 * DAY)
    kept = finish_one(db)
    db.prune()
    assert [row["id"] for row in db.rows("select id from jobs")] == [kept]
    assert db.column("select job_id from job_events") == [kept]
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_during_a_read_no_day_is_dropped_and_workers_continue(db: Database) -> None:
    finish_daily(db, 3)
    reader, worker = db.session(), db.session()
    before = db.counted()
    past = [today(db) - n * DAY for n in (3, 2, 1)]
    with reader.transaction():
        assert reader.value("select count(*) from jobs") == 4
        assert db.prune(timedelta()) == [name("job_events", day) for day in past]
        # a day that could not be dropped is still counted
        assert db.counted() == before == db.depth()
        finish_one(worker)
    assert db.prune(timedelta()) == [name("jobs_finished", day) for day in past]
    assert db.depth() == {("mail", State.COMPLETED): 2} == db.counted()


def test_workers_that_were_silent_for_a_day_are_pruned(db: Database) -> None:
    db.beat("gone")
    db.clock.advance(DAY + timedelta(minutes=1))
    db.beat("here")
    db.prune()
    assert db.column("select id from workers") == ["here"]
