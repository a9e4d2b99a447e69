"""An overview shows the state of every type, and reads neither the history nor a long line."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest

from howdah import State, observe
from howdah.claim.claim import claim
from howdah.claim.line import Line
from howdah.histogram import cell_of
from howdah.observe import Count
from howdah.store import run as store_run
from tests.observe.support import HOUR, MINUTE, beat_worker, measure, open_store
from tests.plans.explain import buffers, read_by
from tests.support import Database


async def overview(db: Database, cap: int = 10_000) -> dict[str, observe.TypeNow]:
    async with open_store(db) as store:
        summary = await observe.overview(store, cap=cap)
    assert summary.late == []
    return {job_type.job_type: job_type for job_type in summary.types}


async def test_waiting_jobs_are_counted_with_the_age_of_the_oldest(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail", "priority": p} for p in (100, 100, 150, 30)])
    db.clock.advance(MINUTE)
    db.enqueue("mail", priority=7)
    mail = (await overview(db))["mail"]
    assert mail.waiting == Count(5)
    assert [(lane.priority, lane.jobs.jobs) for lane in mail.lanes] == [
        (150, 1),
        (100, 2),
        (30, 1),
        (7, 1),
    ]
    assert mail.oldest is not None
    assert MINUTE <= mail.oldest < 2 * MINUTE


async def test_a_long_line_is_counted_up_to_the_cap(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail", "priority": n % 3} for n in range(30)])
    db.enqueue_many([{"job_type": "other"}] * 10)
    summary = await overview(db, cap=10)
    assert summary["mail"].waiting == Count(10, more=True)
    assert str(summary["mail"].waiting) == "10+"
    assert len(summary["mail"].lanes) == 3
    assert summary["other"].waiting == Count(10)


async def test_scheduled_retrying_and_held_jobs_are_counted_separately(db: Database) -> None:
    db.enqueue("mail", delay=HOUR)
    db.enqueue("mail")
    db.retry(db.claim("mail"), delay=HOUR)
    db.enqueue_many([{"job_type": "mail"}] * 3)
    claims = db.claim("mail", batch=2)
    db.start(claims[:1])
    mail = (await overview(db))["mail"]
    assert (mail.waiting, mail.scheduled, mail.retrying) == (Count(1), Count(2), 1)
    assert (mail.claimed, mail.running) == (1, 1)
    assert mail.next_due is not None


async def test_a_type_is_known_by_its_jobs_its_workers_its_measures_or_its_pause(
    db: Database,
) -> None:
    db.enqueue("waiting")
    db.enqueue("ended")
    db.complete(db.claim("ended"))
    beat_worker(db, "w", "known")
    measure(db, "measured", completed=1)
    db.execute("select howdah.pause('paused', 'why')")
    summary = await overview(db)
    assert set(summary) == {"waiting", "ended", "known", "measured", "paused"}
    assert summary["known"].workers == 1
    assert summary["paused"].paused is not None
    assert summary["ended"].finished == summary["ended"].finished_today == {State.COMPLETED: 1}


async def test_silent_workers_are_not_counted(db: Database) -> None:
    beat_worker(db, "w", "mail", slots=7, running=3)
    async with open_store(db) as store:
        summary = await observe.overview(store)
        assert (summary.workers, summary.slots, summary.busy) == (1, 7, 3)
    db.clock.advance(MINUTE)
    async with open_store(db) as store:
        summary = await observe.overview(store)
        assert (summary.workers, summary.slots, summary.busy) == (0, 0, 0)


async def test_rates_and_times_are_of_the_last_minutes(db: Database) -> None:
    slow, fast = [0] * cell_of(100.0) + [50], [0] * cell_of(0.01) + [95]
    measure(db, "mail", failed=50, run=slow, run_seconds=5000)
    db.clock.advance(10 * MINUTE)
    measure(db, "mail", completed=90, failed=4, retried=1, run=fast, run_seconds=0.95)
    mail = (await overview(db))["mail"]
    assert mail.failure_rate == pytest.approx(5 / 95)
    assert mail.per_second == pytest.approx(95 / 60)
    assert mail.run.jobs == 95
    assert mail.run.p99 is not None
    assert mail.run.p99 < timedelta(seconds=0.02)
    assert mail.run.mean == timedelta(seconds=0.01)
    db.clock.advance(2 * MINUTE)
    assert (await overview(db))["mail"].per_second == 0


async def test_the_trend_is_the_last_hour_minute_by_minute(db: Database) -> None:
    measure(db, "mail", completed=1)
    db.clock.advance(30 * MINUTE)
    measure(db, "mail", completed=2, failed=3)
    db.value("select howdah.compact_measures()")
    trend = (await overview(db))["mail"].trend
    assert len(trend) == 60
    assert {later.at - earlier.at for earlier, later in pairwise(trend)} == {MINUTE}
    assert [(n, m.completed, m.failed) for n, m in enumerate(trend) if m.completed] == [
        (29, 1, 0),
        (59, 2, 3),
    ]


# ── cost ──

COUNT_LANES = "select count(*) from howdah.lane_counts(1000)"


def test_a_long_line_is_read_only_up_to_the_cap(db: Database) -> None:
    db.execute("insert into jobs_live (job_type) select 'mail' from generate_series(1, 20000)")
    db.execute("vacuum analyze jobs_live")
    read = read_by(db, lambda: db.rows("select * from howdah.lane_counts(1000)"))
    assert read.seq_scans == 0
    assert read.rows < 1100
    assert buffers(db, COUNT_LANES) < 300


def test_priorities_are_read_up_to_a_limit(db: Database) -> None:
    db.execute(
        "insert into jobs_live (job_type, priority) "
        "select 'mail', n from generate_series(1, 3000) as n"
    )
    assert db.value("select count(*) from howdah.lane_counts(10000, 100)") == 100
    highest = db.value("select max(priority) from howdah.lane_counts(10000, 100)")
    assert highest == 3000


def test_lanes_of_one_type_can_be_counted(db: Database) -> None:
    for job_type in ("a", "b", "c"):
        db.enqueue(job_type, priority=2147483647)
        db.enqueue(job_type, priority=-2147483648)
    rows = db.rows("select job_type, priority from howdah.lane_counts(10, 10, 'b')")
    assert [tuple(row.values()) for row in rows] == [("b", 2147483647), ("b", -2147483648)]


async def test_the_history_is_never_read(db: Database) -> None:
    db.enqueue_many([{"job_type": "mail"}] * 5)
    db.complete(db.claim("mail"))
    db.enqueue("mail")
    within = timedelta(milliseconds=300)
    async with open_store(db) as store:
        with db.transaction():
            db.execute("lock table howdah.jobs_finished in access exclusive mode")
            summary = await observe.overview(store, within=within)
            assert summary.late == []
            assert summary.types[0].finished == {State.COMPLETED: 5}
            await observe.workers(store, within=within)
            with pytest.raises(
                observe.TookTooLong
            ):  # proof that the lock blocks a read of the history
                await observe.page(store, within=within)


async def test_jobs_that_were_claimed_a_moment_ago_are_counted_as_claimed(db: Database) -> None:
    """They are not in the index of held jobs yet."""
    db.enqueue_many([{"job_type": "mail"} for _ in range(5)])
    async with open_store(db) as store:
        claims = await claim(store, "worker", 2, Line(["mail"]))
        mail = (await overview(db))["mail"]
        assert (mail.waiting, mail.claimed, mail.running) == (Count(3), 2, 0)
        await store_run.start(store, "worker", [(claims[0], 0.0)])
        mail = (await overview(db))["mail"]
        assert (mail.waiting, mail.claimed, mail.running) == (Count(3), 1, 1)
        await claim(store, "worker", 10, Line(["mail"]))
    mail = (await overview(db))["mail"]
    assert (mail.waiting, mail.claimed, mail.lanes) == (Count(0), 4, [])
