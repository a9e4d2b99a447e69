"""Prune forgets by whole days: it drops a day's tables and never deletes row by row."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from howdah.states import State
from tests.support import Database
from tests.upkeep.days import DAY, finish_one, name, today

pytestmark = pytest.mark.engine


def live_through(db: Database, days: int) -> list[UUID]:
    """Finish a job a day, preparing each day as upkeep would; ends on the last day."""
    jobs = [finish_one(db)]
    for _ in range(days):
        db.clock.advance(DAY)
        db.prepare_days()
        jobs.append(finish_one(db))
    return jobs


def test_a_week_is_kept_by_default(db: Database) -> None:
    jobs = live_through(db, 9)
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


def test_how_long_is_an_option(db: Database) -> None:
    jobs = live_through(db, 5)
    db.execute("update options set value = '2 days' where name = 'keep_finished'")
    db.execute("update options set value = '4 days' where name = 'keep_events'")
    db.prune()
    assert {row["id"] for row in db.rows("select id from jobs")} == set(jobs[-3:])
    assert set(db.column("select job_id from job_events")) == set(jobs[-5:])
    assert db.depth() == db.counted()


def test_how_long_may_be_said_in_the_call(db: Database) -> None:
    jobs = live_through(db, 2)
    db.prune(timedelta())
    assert {row["id"] for row in db.rows("select id from jobs")} == {jobs[-1]}
    with pytest.raises(psycopg.Error, match="p_keep must not be negative"):
        db.prune(-DAY)
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_live_jobs_are_never_forgotten(db: Database) -> None:
    old = db.enqueue("old")
    held = db.enqueue("held")
    claims = db.claim("held")
    waiting = db.enqueue("waiting", delay=400 * DAY)
    db.clock.advance(365 * DAY)
    db.prune(timedelta())
    assert {row["id"] for row in db.rows("select id from jobs")} == {old, held, waiting}
    assert db.complete(claims) == {held}


def test_what_stood_in_no_prepared_day_is_forgotten_too(db: Database) -> None:
    db.clock.advance(30 * DAY)  # far ahead of what is prepared
    finish_one(db)
    assert db.column("select tableoid::regclass::text from jobs") == ["jobs_finished_unprepared"]
    db.clock.advance(9 * DAY)
    kept = finish_one(db)
    db.prune()
    assert [row["id"] for row in db.rows("select id from jobs")] == [kept]
    assert db.column("select job_id from job_events") == [kept]
    assert db.depth() == {("mail", State.COMPLETED): 1} == db.counted()


def test_while_somebody_reads_nothing_is_dropped_and_work_goes_on(db: Database) -> None:
    live_through(db, 3)
    reader, worker = db.session(), db.session()
    before = db.counted()
    past = [today(db) - n * DAY for n in (3, 2, 1)]
    with reader.transaction():
        assert reader.value("select count(*) from jobs") == 4
        assert db.prune(timedelta()) == [name("job_events", day) for day in past]
        # what could not be dropped is still there, and still counted
        assert db.counted() == before == db.depth()
        finish_one(worker)
    assert db.prune(timedelta()) == [name("jobs_finished", day) for day in past]
    assert db.depth() == {("mail", State.COMPLETED): 2} == db.counted()


def test_workers_gone_for_a_day_are_forgotten(db: Database) -> None:
    db.beat("gone")
    db.clock.advance(DAY + timedelta(minutes=1))
    db.beat("here")
    db.prune()
    assert db.column("select id from workers") == ["here"]
