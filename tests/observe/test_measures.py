"""Measures keep their sums when they are compacted, and a worker measures its jobs at low cost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from howdah import Cancel, Fail, Queue, Retry, Snooze
from howdah.histogram import BOUNDS, CELLS, cell_of, quantile
from howdah.job import Claim
from howdah.observe import Times
from howdah.outcomes import Complete, Ending, Outcome, Release
from howdah.run.measures import SAMPLE, Measures
from howdah.states import State, Verb
from howdah.store import Store
from tests.observe.support import HOUR, MINUTE, measure
from tests.support import Database
from tests.support.waiting import eventually

# ── in SQL ──


def sums(db: Database, job_type: str = "mail") -> dict[str, Any]:
    (row,) = db.rows("select * from howdah.measured() where job_type = %s", job_type)
    return row


@pytest.mark.engine
def test_measures_of_all_workers_are_summed_by_type(db: Database) -> None:
    measure(db, "mail", "a", completed=3, failed=1, run=[0, 3, 1], run_seconds=0.5)
    measure(db, "mail", "b", completed=2, retried=4, run=[1], pickup=[0, 0, 6], pickup_seconds=1.5)
    measure(db, "other", "b", cancelled=1, released=2)
    assert sums(db) == {
        "job_type": "mail",
        "completed": 5,
        "failed": 1,
        "retried": 4,
        "cancelled": 0,
        "released": 0,
        "run": [1, 3, 1],
        "pickup": [0, 0, 6],
        "run_seconds": 0.5,
        "pickup_seconds": 1.5,
    }
    assert (sums(db, "other")["cancelled"], sums(db, "other")["released"]) == (1, 2)


@pytest.mark.engine
def test_compacting_leaves_few_rows_and_changes_no_sum(db: Database) -> None:
    rng = random.Random(5)
    for step in range(300):  # 25 minutes of two workers and two types
        for worker in ("a", "b"):
            for job_type in ("mail", "resize"):
                cells = [rng.randrange(4) for _ in range(rng.randrange(CELLS + 1))]
                measure(
                    db,
                    job_type,
                    worker,
                    completed=rng.randrange(9),
                    run=cells,
                    pickup=cells[:3],
                )
        db.clock.advance(timedelta(seconds=5))
        if step % 60 == 59:
            before = [sums(db, job_type) for job_type in ("mail", "resize")]
            assert db.value("select howdah.compact_measures()") > 0
            assert [sums(db, job_type) for job_type in ("mail", "resize")] == before
    fresh, minutes = 2 * 2 * 25, 2 * (25 + 5)  # a minute that was compacted twice has two rows
    assert db.value("select count(*) from measures") <= fresh + minutes < 2 * 2 * 300
    db.clock.advance(3 * HOUR)
    before = [sums(db, job_type) for job_type in ("mail", "resize")]
    assert db.value("select howdah.compact_measures()") > 0
    assert [sums(db, job_type) for job_type in ("mail", "resize")] == before
    assert db.column("select job_type from measures where at = '-infinity' order by 1") == [
        "mail",
        "resize",
    ]
    assert db.value("select count(*) from measures") == 2


@pytest.mark.engine
def test_compacting_keeps_the_minutes_of_the_trend(db: Database) -> None:
    start = db.value("select date_trunc('minute', howdah.clock())")
    for n in range(4):
        measure(db, "mail", completed=n + 1)
        measure(db, "mail", "other", failed=1, retried=2)
        db.clock.advance(MINUTE)
    by_minute = "select at, completed, failed, retried from howdah.measured_by_minute('-infinity')"
    before = db.rows(by_minute)
    assert [row["completed"] for row in before] == [1, 2, 3, 4]
    assert [row["at"] for row in before] == [start + n * MINUTE for n in range(4)]
    db.value("select howdah.compact_measures()")
    assert db.rows(by_minute) == before


@pytest.mark.engine
def test_compacting_compacted_measures_changes_nothing(db: Database) -> None:
    measure(db, "mail", completed=1)
    assert db.value("select howdah.compact_measures()") == 0
    db.clock.advance(3 * HOUR)
    db.value("select howdah.compact_measures()")
    assert db.value("select howdah.compact_measures()") == 0
    assert db.value("select count(*) from measures") == 1


@pytest.mark.engine
def test_only_one_session_compacts_at_a_time(db: Database) -> None:
    other = db.session()
    with other.transaction():
        other.value("select howdah.compact_measures()")
        assert db.value("select howdah.compact_measures()") is None
    assert db.value("select howdah.compact_measures()") == 0


@pytest.mark.engine
@pytest.mark.parametrize(
    "wrong",
    [{"completed": -1}, {"run": [1] * 57}, {"run_seconds": -1}, {"pickup_seconds": "Infinity"}],
)
def test_a_bad_measure_is_refused(db: Database, wrong: dict[str, Any]) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        measure(db, "mail", **wrong)


@pytest.mark.engine
def test_measures_that_are_not_an_array_are_refused(db: Database) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        db.execute("""select howdah.record_measures('w', '{"job_type": "mail"}')""")


# ── histograms ──


def test_every_time_falls_into_the_cell_whose_bound_is_not_below_it() -> None:
    assert [cell_of(s) for s in (0.0, BOUNDS[0], BOUNDS[0] * 1.01, BOUNDS[-1])] == [0, 0, 1, 54]
    assert cell_of(1e9) == CELLS - 1
    assert len(BOUNDS) == CELLS - 1


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
def test_a_quantile_is_off_by_a_fifth_at_most(share: float) -> None:
    rng = random.Random(7)
    times = sorted(rng.lognormvariate(-3, 2) for _ in range(5000))
    cells = [0] * CELLS
    for seconds in times:
        cells[cell_of(seconds)] += 1
    exact = times[int(share * len(times)) - 1]
    read = quantile(cells, share)
    assert read is not None
    assert exact / 1.2 < read < exact * 1.2


def test_an_empty_histogram_has_no_quantile_and_the_last_cell_has_the_last_bound() -> None:
    assert quantile([], 0.5) is None
    assert Times.of([0, 0], 0.0) == Times()
    assert quantile([0] * (CELLS - 1) + [3], 0.99) == BOUNDS[-1]


# ── in a worker ──


class UnusedStore(Store):
    """A store that is never connected."""

    def __init__(self) -> None:
        super().__init__("postgresql:///nowhere")


def ending(
    job_type: str = "mail",
    outcome: Outcome | None = None,
    *,
    waited: float = 1.0,
    ran: float = 0.1,
    now: float = 1000.0,
) -> Ending:
    claimed = now - ran
    claim = Claim(uuid4(), job_type, 100, "{}", 1, 3, claimed - waited, claimed, claimed)
    return Ending(claim, outcome or Complete(), now - ran, now)


def take_measures(measures: Measures, job_type: str = "mail") -> dict[str, Any]:
    return measures.take()[job_type]


def settled(measures: Measures, verb: Verb, endings: Sequence[Ending]) -> None:
    measures.settled(verb, endings, dict.fromkeys(ending.claim.id for ending in endings), 1000.0)


@pytest.fixture
def measures() -> Measures:
    new_measures = Measures(UnusedStore(), "w", lambda: None)
    new_measures.claimed(0.0, 0.0)  # both clocks show the same time
    return new_measures


def test_every_ending_is_counted_by_its_verb(measures: Measures) -> None:
    settled(measures, Verb.COMPLETE, [ending() for _ in range(3)])
    settled(measures, Verb.FAIL, [ending(outcome=Fail())])
    settled(measures, Verb.CANCEL, [ending(outcome=Cancel())])
    settled(measures, Verb.RELEASE, [ending(outcome=Snooze(1)), ending(outcome=Release())])
    retried, failed = ending(outcome=Retry()), ending(outcome=Retry())
    moved = {retried.claim.id: State.PENDING, failed.claim.id: State.FAILED}
    measures.settled(Verb.RETRY, [retried, failed], moved, 1000.0)
    counts = {
        name: n
        for name, n in take_measures(measures).items()
        if isinstance(n, int) and name != "job_type"
    }
    assert counts == {"completed": 3, "failed": 2, "retried": 1, "cancelled": 1, "released": 1}


def test_a_stale_ending_is_not_counted(measures: Measures) -> None:
    current, stale = ending(), ending()
    measures.settled(Verb.COMPLETE, [current, stale], {current.claim.id: None}, 1000.0)
    row = take_measures(measures)
    assert (row["completed"], sum(row["run"])) == (1, 1)


@pytest.mark.parametrize("jobs", [1, SAMPLE, SAMPLE + 1, 1000])
def test_a_large_batch_is_sampled_and_every_job_of_it_still_counts(
    measures: Measures, jobs: int
) -> None:
    settled(measures, Verb.COMPLETE, [ending() for _ in range(jobs)])
    row = take_measures(measures)
    assert row["completed"] == sum(row["run"]) == sum(row["pickup"]) == jobs
    assert row["run"][cell_of(0.1)] == row["pickup"][cell_of(1.0)] == jobs
    assert row["run_seconds"] == pytest.approx(0.1 * jobs)
    assert row["pickup_seconds"] == pytest.approx(1.0 * jobs)


def test_a_rare_type_in_a_large_batch_is_counted(measures: Measures) -> None:
    mixed = [ending("rare", ran=5.0), *(ending() for _ in range(999))]
    settled(measures, Verb.COMPLETE, mixed)
    assert take_measures(measures, "rare")["run"][cell_of(5.0)] == 1


def test_the_pickup_time_is_measured_by_the_clock_of_the_server(measures: Measures) -> None:
    measures = Measures(UnusedStore(), "w", lambda: None)
    measures.claimed(600.0, 0.25)  # the server is at most 599.75 s ahead
    measures.claimed(600.0, 0.5)
    by_server = ending(waited=2.0, ran=0.0)
    by_worker = Ending(by_server.claim, by_server.outcome, 1000.0 - 599.5, 1000.0 - 599.5)
    settled(measures, Verb.COMPLETE, [by_worker])
    assert take_measures(measures)["pickup_seconds"] == pytest.approx(2.0, abs=0.001)


async def test_a_worker_records_its_measures(queue: Queue) -> None:
    @queue.job(max_attempts=2)
    async def work(n: int) -> None:
        if n == 0:
            raise ValueError("no")
        if n == 1:
            raise Fail("never")
        await asyncio.sleep(0.05)

    for n in range(6):
        await queue.enqueue("work", {"n": n})
    async with queue.worker() as worker:
        await eventually(lambda: _ended(queue, 6), "all jobs have ended")
        await worker.run_until_idle()
    row = (await queue.store.fetch("select * from howdah.measured()"))[0]
    assert {name: row[name] for name in ("completed", "failed", "retried", "released")} == {
        "completed": 4,
        "failed": 2,
        "retried": 1,
        "released": 0,
    }
    assert sum(row["run"]) == sum(row["pickup"]) == 7
    # a sleep of 50 ms is never shorter: four of seven ran for that long
    assert row["run_seconds"] >= 4 * 0.05
    assert sum(row["run"][cell_of(0.05) :]) >= 4
    assert row["pickup_seconds"] > 0


async def _ended(queue: Queue, jobs: int) -> bool:
    counts = (await queue.counts()).get("work", {})
    return sum(n for state, n in counts.items() if state.finished) == jobs


@pytest.mark.slow
async def test_a_drain_request_stops_the_worker(queue: Queue) -> None:
    @queue.job
    async def work() -> None: ...

    worker = queue.worker()
    async with worker:
        assert await queue.store.fetchval("select howdah.drain($1)", worker.id)
        assert not await queue.store.fetchval("select howdah.drain('nobody')")
        await asyncio.wait_for(worker.stopping(), timeout=30)
    assert await queue.store.fetchval("select count(*) from howdah.drain_requests") == 0


async def test_measures_that_cannot_be_written_do_not_stop_a_worker(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.job
    async def work() -> None: ...

    monkeypatch.setattr("howdah.run.measures.EVERY", 0.01)
    await queue.store.fetch("alter function howdah.record_measures(text, jsonb) rename to gone")
    async with queue.worker():
        await eventually(
            lambda: "measures.lost" in caplog.text, "the measures could not be written"
        )
        await (await work.enqueue()).result(timeout=10)
