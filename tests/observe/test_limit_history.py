"""Limit history: several samples a minute, kept in few rows whatever waits, and pruned."""

from __future__ import annotations

from datetime import timedelta

import pytest

from howdah import Queue
from howdah.observe import Count, LimitOverTime, LimitPoint, Range, limit_over_time
from tests.observe.support import HOUR, MINUTE, beat_worker, measure, open_store
from tests.support import Database
from tests.support.waiting import eventually

SAMPLE = "select howdah.sample_limits()"
SECONDS = timedelta(seconds=10)


async def read(db: Database, range: Range = Range.HOUR, name: str = "api") -> LimitOverTime:
    async with open_store(db) as store:
        return await limit_over_time(store, name, range)


def counted(history: LimitOverTime) -> list[LimitPoint]:
    return [point for point in history.points if point.admitted is not None]


def advance_to_next_minute(db: Database) -> None:
    left = db.value("select 60 - extract(second from howdah.clock())")
    db.clock.advance(timedelta(seconds=float(left) + 1))


@pytest.fixture
def limited(db: Database) -> Database:
    """A database with a limit of three, at the beginning of a minute."""
    db.execute("select howdah.set_limit('api', 3), howdah.set_limit('idle', 1)")
    db.execute("select howdah.set_type_limit('mail', null, p_limit => 'api')")
    advance_to_next_minute(db)
    return db


@pytest.mark.engine
async def test_a_minute_has_the_most_and_the_mean_of_its_samples(limited: Database) -> None:
    db = limited
    db.enqueue_many([{"job_type": "mail"}] * 7)
    db.admit_all()
    assert db.value(SAMPLE)
    db.clock.advance(SECONDS)
    db.complete(db.claim("mail", batch=3))
    db.complete(db.claim("mail", batch=3))
    assert db.value(SAMPLE)
    (point,) = counted(await read(db))
    assert (point.admitted, point.mean, point.waiting) == (Count(3), 2.0, Count(4))
    (idle,) = counted(await read(db, name="idle"))
    assert (idle.admitted, idle.mean, idle.waiting) == (Count(0), 0.0, Count(0))
    assert db.value("select count(*) from limit_history") == 2, "an idle limit has no row"


@pytest.mark.engine
def test_it_is_counted_by_one_for_all(limited: Database) -> None:
    db = limited
    assert db.value(SAMPLE)
    assert not db.value(SAMPLE), "it was just counted"
    other = db.session()
    with other.transaction():
        other.value("select pg_advisory_xact_lock(howdah.lock_space(), 4)")
        db.clock.advance(SECONDS)
        assert not db.value(SAMPLE), "another worker counts now"
    assert db.value(SAMPLE)


@pytest.mark.engine
def test_without_a_limit_nothing_is_written(db: Database) -> None:
    assert not db.value(SAMPLE)
    assert db.value("select count(*) from limit_history") == 0


@pytest.mark.engine
async def test_the_keys_of_a_limit_are_one_row(db: Database) -> None:
    db.execute("select howdah.set_limit('api', 1, p_per_key => true)")
    db.execute("select howdah.set_type_limit('mail', null, p_limit => 'api')")
    for n in range(20):
        db.enqueue("mail", key=f"key-{n % 10}")
    db.admit_all()
    assert db.value(SAMPLE)
    assert db.value("select count(*) from limit_history where name <> ''") == 1
    (point,) = counted(await read(db))
    assert (point.admitted, point.waiting) == (Count(10), Count(10))


@pytest.mark.engine
async def test_more_than_the_cap_is_said(limited: Database) -> None:
    limited.enqueue_many([{"job_type": "mail"}] * 20)
    limited.admit_all()
    assert limited.value("select howdah.sample_limits(5)")
    (point,) = counted(await read(limited))
    assert point.waiting == Count(5, True)


@pytest.mark.engine
async def test_a_minute_without_a_sample_is_unknown(limited: Database) -> None:
    assert limited.value(SAMPLE)
    limited.clock.advance(5 * MINUTE)
    assert limited.value(SAMPLE)
    points = (await read(limited)).points
    assert [point.admitted for point in points[-6:]] == [Count(), None, None, None, None, Count()]
    assert points[-3] == LimitPoint(at=points[-3].at)


@pytest.mark.engine
async def test_attempts_of_all_types_that_name_the_limit_are_added(limited: Database) -> None:
    db = limited
    db.execute("select howdah.set_type_limit('report', null, p_limit => 'api')")
    beat_worker(db, "w", "mail")
    measure(db, "mail", completed=3, failed=1)
    measure(db, "report", completed=2, retried=4)
    measure(db, "other", completed=50)
    db.clock.advance(2 * MINUTE)
    db.value("select howdah.compact_measures()")
    (point,) = [point for point in (await read(db)).points if point.attempts]
    assert (point.attempts, point.minutes, point.per_minute) == (10, 1, 10)
    other = await read(db, name="idle")
    assert {point.attempts for point in other.points} == {None, 0}


@pytest.mark.engine
async def test_a_week_is_kept_in_few_rows_and_older_ones_are_deleted(limited: Database) -> None:
    db = limited
    db.enqueue_many([{"job_type": "mail"}] * 9)
    db.admit_all()
    for hour in range(10 * 24):
        for _ in range(2):
            assert db.value(SAMPLE)
            db.clock.advance(SECONDS)
        if hour == 9 * 24:
            db.enqueue_many([{"job_type": "mail"}] * 5)
        db.clock.advance(HOUR - 2 * SECONDS)
        assert db.value("select howdah.compact_measures()") is not None
    week, day = await read(db, Range.WEEK), await read(db, Range.DAY)
    assert (len(week.points), len(day.points)) == (84, 96)
    assert len(counted(week)) >= 83
    assert {point.admitted for point in counted(week)} == {Count(3)}
    assert {point.mean for point in counted(week)} == {3.0}
    assert {point.waiting for point in counted(week)} == {Count(6), Count(11)}
    assert len(counted(day)) in (23, 24)
    rows = "select count(*) from limit_history where name = 'api'"
    assert db.value(rows) <= 8 * 12 + 25 + 3
    assert db.value("select howdah.clock() - min(at) from limit_history") <= timedelta(
        days=8, hours=3
    )
    db.execute("update options set value = '1 day' where name = 'keep_measure_history'")
    db.value("select howdah.compact_measures()")
    assert db.value(rows) <= 28


@pytest.mark.engine
async def test_a_worker_counts_the_use_of_limits(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.run.measures.EVERY", 0.05)
    queue.limit("api", at_once=1)

    @queue.job(limit="api")
    async def mail() -> None: ...

    async def written() -> bool:
        return bool(counted(await limit_over_time(queue.store, "api")))

    async with queue.worker():
        await eventually(written, "the worker counted")
