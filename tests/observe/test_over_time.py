"""Over time: an hour, a day and a week are kept in few rows; unmeasured minutes are unknown."""

from __future__ import annotations

import time
from datetime import timedelta
from uuid import uuid4

import pytest

from howdah import Queue
from howdah.observe import Count, OverTime, Point, Range, TookTooLong, over_time
from howdah.run.measures import Measures
from tests.observe.support import HOUR, MINUTE, beat_worker, measure, open_store
from tests.support import Database
from tests.support.waiting import eventually

DAY = timedelta(days=1)


async def read(db: Database, range: Range, job_type: str | None = None) -> OverTime:
    async with open_store(db) as store:
        return await over_time(store, range, job_type)


def measured_points(history: OverTime) -> list[Point]:
    return [point for point in history.points if point.completed is not None]


def advance_to_next_minute(db: Database, seconds: int = 1) -> None:
    """Advance the clock to shortly after the start of the next minute."""
    left = db.value("select 60 - extract(second from howdah.clock())")
    db.clock.advance(timedelta(seconds=float(left) + seconds))


def compact(db: Database, after: timedelta = 2 * MINUTE) -> None:
    db.clock.advance(after)
    assert db.value("select howdah.compact_measures()") is not None


@pytest.mark.engine
async def test_a_minute_is_kept_for_each_type_and_for_all_types(db: Database) -> None:
    advance_to_next_minute(db)
    measure(db, "mail", "a", completed=3, failed=1, run=[0, 3, 1], run_seconds=0.5)
    measure(db, "mail", "b", completed=2, retried=4, run=[1], pickup=[0, 0, 6], pickup_seconds=1.5)
    measure(db, "other", "b", completed=7, run=[0, 0, 0, 7])
    compact(db)
    (mail,) = measured_points(await read(db, Range.HOUR, "mail"))
    (total,) = measured_points(await read(db, Range.HOUR))
    assert (mail.completed, mail.failed, mail.retried, mail.minutes) == (5, 1, 4, 1)
    assert (total.completed, total.failed, total.retried, total.minutes) == (
        12,
        1,
        4,
        1,
    )
    assert (mail.run.jobs, total.run.jobs, mail.pickup.jobs) == (5, 12, 6)
    assert mail.run.mean == timedelta(seconds=0.1)
    assert mail.per_minute(mail.completed) == 5
    assert Point(at=mail.at).per_minute(3) is None


@pytest.mark.engine
async def test_an_idle_minute_is_zero_and_one_without_a_worker_is_unknown(db: Database) -> None:
    advance_to_next_minute(db)
    beat_worker(db, "w", "mail")
    for _ in range(3):
        db.clock.advance(MINUTE)
        beat_worker(db, "w", "mail")
    db.value("select howdah.compact_measures()")
    db.clock.advance(20 * MINUTE)  # no worker is alive
    db.value("select howdah.deregister('w')")
    beat_worker(db, "other", "mail")
    compact(db)
    history = await read(db, Range.HOUR, "mail")
    minutes = [(point.completed, point.minutes) for point in history.points]
    first = minutes.index((0, 1))
    assert minutes[first : first + 2] == [(0, 1)] * 2
    assert minutes[first + 5 : first + 20] == [(None, 0)] * 15
    assert (0, 1) in minutes[first + 20 :], "the new worker was alive"
    assert minutes[-1] == (None, 0), "the current minute is unknown"


@pytest.mark.engine
async def test_waiting_jobs_are_counted_once_a_minute(db: Database) -> None:
    advance_to_next_minute(db)
    db.execute("insert into jobs (job_type) select 'mail' from generate_series(1, 7)")
    db.execute("insert into jobs (job_type) values ('other')")
    assert db.value("select howdah.sample_waiting()")
    assert not db.value("select howdah.sample_waiting()")
    db.execute("insert into jobs (job_type) select 'mail' from generate_series(1, 3)")
    assert [p.waiting for p in (await read(db, Range.HOUR)).points][-1] == Count(8)
    assert [p.waiting for p in (await read(db, Range.HOUR, "mail")).points][-1] == Count(7)
    assert [p.waiting for p in (await read(db, Range.HOUR, "none")).points][-1] == Count(0)
    assert [p.waiting for p in (await read(db, Range.HOUR)).points][-2] is None
    db.clock.advance(MINUTE)
    assert db.value("select howdah.sample_waiting(5)")
    assert [p.waiting for p in (await read(db, Range.HOUR, "mail")).points][-2:] == [
        Count(7),
        Count(5, True),
    ]


@pytest.mark.engine
def test_an_empty_line_is_counted_too(db: Database) -> None:
    assert db.value("select howdah.sample_waiting()")
    assert db.rows("select job_type, waiting, more from measure_history") == [
        {"job_type": "", "waiting": 0, "more": False}
    ]


@pytest.mark.engine
async def test_a_day_and_a_week_add_up_to_what_was_measured(db: Database) -> None:
    start = db.clock.offset
    for hour in range(8 * 24):
        measure(db, "mail", completed=60, failed=1, run=[0, 61], run_seconds=0.04)
        if hour % 24 == 5:
            db.execute("insert into jobs (job_type) values ('mail')")
        db.value("select howdah.sample_waiting()")
        compact(db, HOUR)
    week, day = await read(db, Range.WEEK, "mail"), await read(db, Range.DAY)
    assert (len(week.points), len(day.points)) == (84, 96)
    # the newest of the 84 points has just begun or is almost over
    assert 60 * 166 <= sum(p.completed or 0 for p in measured_points(week)) <= 60 * 168
    assert sum(p.completed or 0 for p in measured_points(day)) in (60 * 23, 60 * 24)
    assert {p.minutes for p in measured_points(week)} <= {1, 2}
    assert {p.per_minute(p.completed) for p in measured_points(week)} == {60}
    assert max(p.waiting.jobs for p in week.points if p.waiting) == 8
    assert {p.run.p50 for p in measured_points(week)} == {measured_points(day)[-1].run.p50}
    kept = "select count(*) as rows, min(at) as oldest from measure_history where job_type = 'mail'"
    rows, oldest = db.rows(kept)[0].values()
    assert rows < 250
    now = db.value("select howdah.clock()")
    assert now - 8 * DAY - 4 * HOUR < oldest < now - 7 * DAY
    assert db.clock.offset - start == 8 * DAY


@pytest.mark.engine
def test_compacting_the_history_keeps_the_sums_in_few_rows(db: Database) -> None:
    advance_to_next_minute(db)
    for _ in range(150):
        for worker in ("a", "b"):
            measure(db, "mail", worker, completed=2, retried=1, pickup=[1, 2], run=[0, 0, 3])
        db.value("select howdah.sample_waiting()")
        beat_worker(db, "a", "mail")
        compact(db, MINUTE)
    compact(db)
    sums = """
        select sum(completed)::int as completed, sum(retried)::int as retried,
               sum(pickup[2])::int as pickup, sum(run[3])::int as run
        from measure_history where job_type = %s"""
    for job_type in ("mail", ""):
        assert tuple(db.rows(sums, job_type)[0].values()) == (600, 300, 600, 900)
    assert (
        150 <= db.value("select sum(minutes) from measure_history") <= 155
    )  # with idle minutes at the end
    # 75 minutes by the minute, with a measure and a count each; the rest by 15 minutes
    assert db.value("select count(*) from measure_history where job_type = ''") <= 2 * 82 + 8
    steps = "select distinct step from measure_history order by 1"
    assert db.column(steps) == [MINUTE, 15 * MINUTE]


@pytest.mark.engine
async def test_measures_that_were_compacted_late_are_in_the_history(db: Database) -> None:
    measure(db, "mail", completed=5)
    compact(db, 5 * HOUR)
    assert sum(p.completed or 0 for p in (await read(db, Range.DAY)).points) == 5
    assert db.value("select completed from measures where at = '-infinity'") == 5


@pytest.mark.engine
async def test_a_minute_that_is_compacted_twice_counts_as_one_minute(db: Database) -> None:
    advance_to_next_minute(db)
    measure(db, "mail", completed=5)
    db.clock.advance(3 * MINUTE)
    db.value("select howdah.compact_measures()")
    db.clock.advance(-3 * MINUTE)  # a report that came late, or a clock that was set back
    measure(db, "mail", completed=6)
    compact(db, 3 * MINUTE)
    (point,) = measured_points(await read(db, Range.HOUR))
    assert (point.completed, point.minutes) == (11, 1)


@pytest.mark.engine
async def test_measures_from_the_future_are_not_shown(db: Database) -> None:
    db.clock.advance(2 * DAY)
    measure(db, "mail", completed=5)
    compact(db)
    db.clock.advance(-2 * DAY)
    history = await read(db, Range.WEEK)
    assert measured_points(history) == []
    assert len(history.points) == 84


@pytest.mark.engine
async def test_huge_counts_and_special_type_names_are_kept(db: Database) -> None:
    name = "<script>'\"&\\ %s ü"
    measure(db, name, completed=10**12, run=[0] * 55 + [10**12], run_seconds=1e17)
    compact(db)
    (point,) = measured_points(await read(db, Range.HOUR, name))
    assert (point.completed, point.run.jobs) == (10**12, 10**12)


# ── cost ──


@pytest.mark.engine
async def test_a_chart_reads_a_few_hundred_rows_however_many_types_there_are(db: Database) -> None:
    db.execute(
        """
        insert into measure_history (at, step, job_type, minutes, completed)
        select howdah.clock() - n * interval '2 hours', '2 hours', t.name, 120, 1
        from generate_series(0, 90) as n,
             (select '' as name union all select 'type' || i from generate_series(1, 300) as i) as t
        """
    )
    db.execute("vacuum analyze measure_history")
    plan = db.column(
        "explain (analyze, buffers, costs off, timing off) "
        "select * from howdah.measure_history where job_type = 'type7' and "
        "at >= howdah.clock() - interval '7 days' and at <= howdah.clock() "
        "order by at desc limit 2000"
    )
    assert "measure_history_of_type" in "\n".join(plan)
    assert "Seq Scan" not in "\n".join(plan)
    for job_type in ("type7", None):
        history = await read(db, Range.WEEK, job_type)
        assert sum(p.completed or 0 for p in history.points) == 84


# ── workers ──


async def test_a_worker_counts_waiting_jobs(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    @queue.job
    async def work() -> None: ...

    monkeypatch.setattr("howdah.run.measures.EVERY", 0.05)
    await queue.pause("idle")
    await queue.enqueue("idle")

    async def counted() -> bool:
        history = await over_time(queue.store, Range.HOUR, "idle")
        return any(point.waiting == Count(1) for point in history.points)

    async with queue.worker():
        await eventually(counted, "the worker counted")


async def test_a_count_that_takes_too_long_is_not_repeated_at_once(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("howdah.run.measures.COUNT_WITHIN", timedelta(milliseconds=50))
    await queue.store.fetch(
        "create or replace function howdah.sample_waiting(p_cap int default 100000) returns bool "
        "language sql as $$ select true from pg_sleep(60) $$"
    )
    measures = Measures(queue.store, str(uuid4()), lambda: None)
    began = time.monotonic()
    with pytest.raises(TookTooLong):
        await measures.count_waiting()
    await measures.count_waiting()  # does not query again
    assert time.monotonic() - began < 30
