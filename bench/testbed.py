"""Testbed: a database with howdah installed, and the processes that a case starts in it.

Comes before  cases.py, adverse/, growth/, memory.py, upkeep_delays.py, observe_dashboard.py
Beside        case_driver.py, which runs in those processes

A drain is timed as in measure/run.py, and counts only if every job ran once. The number of
settled jobs is read from finished_counts: counting the live jobs would take longer the more of
them there are.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg

from bench.call_counter import CallReader
from bench.case_record import Point
from bench.driver_process import DriverFailed, DriverProcess, start_driver
from bench.install import ROOT, Environment
from bench.measure.prepared_peer import InvalidMeasurement
from bench.sample_jobs import NOOP, WARM_UP, drafts
from bench.server import Postgres
from howdah import Queue

CASE_DRIVER = Environment(ROOT, (sys.executable, "-m", "bench.case_driver"), {})
POLL = 0.002
SAMPLE_INTERVAL = 0.2  # seconds between two points of a drain's curve
LONGEST_DRAIN = 600.0
SETTLED = "select coalesce(sum(jobs), 0) from howdah.finished_counts where job_type <> %s"
INSERT_FINISHED = """
    insert into howdah.jobs (
        job_type, status, data, progress, worker_id, created_at, started_at, completed_at, attempts)
    select 'old', 'completed', jsonb_build_object('number', n, 'rest', repeat('x', 76)), 100,
           'somebody', now(), now(), now(), 1
    from generate_series(1, %s) as n
"""
INSERT_BATCH = 250_000  # its trigger keeps the rows of a statement in memory


@dataclass(frozen=True, slots=True)
class DrainResult:
    """The result of one drain: its length, and its rate over time."""

    jobs: int
    seconds: float
    rates: list[Point]

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


class Worker:
    """A worker process."""

    def __init__(self, driver: DriverProcess, folder: Path, pid: int) -> None:
        self.driver = driver
        self.folder = folder
        self.pid = pid
        self.calls = CallReader(folder)


class Testbed:
    """One database, with howdah installed."""

    __test__ = False  # not a test of pytest

    def __init__(self, dsn: str, postgres: Postgres) -> None:
        self.dsn = dsn
        self.postgres = postgres

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=autocommit)

    def execute(self, sql: str) -> None:
        with self.connect() as connection:
            connection.execute(cast(LiteralString, sql))

    def settled(self) -> int:
        with self.connect() as connection:
            row = connection.execute(SETTLED, [WARM_UP]).fetchone()
        assert row is not None
        return int(row[0])

    def vacuum_and_checkpoint(self) -> None:
        """Leave no work to autovacuum and the checkpointer."""
        self.execute("vacuum analyze")
        self.postgres.checkpoint()

    def enqueue(
        self,
        jobs: int,
        names: Sequence[str] = (NOOP,),
        priorities: Sequence[int] = (100,),
        delay: timedelta | None = None,
    ) -> None:
        async def run() -> None:
            async with Queue(self.dsn) as queue:
                await queue.enqueue_many(drafts(queue, names, range(jobs), priorities, delay))

        if jobs:
            asyncio.run(run())

    def insert_finished(self, jobs: int) -> None:
        """Insert finished jobs with plain SQL."""
        with self.connect() as connection:
            for first in range(0, jobs, INSERT_BATCH):
                connection.execute(INSERT_FINISHED, [min(INSERT_BATCH, jobs - first)])

    @contextmanager
    def driver(
        self, verb: str, jobs: int = 0, folder: Path | None = None, **options: Any
    ) -> Generator[DriverProcess]:
        """Start a process of case_driver.py."""
        arguments = {"address": self.dsn, "jobs": jobs, "options": options}
        with start_driver(CASE_DRIVER, verb, arguments, folder) as driver:
            yield driver

    @contextmanager
    def worker(self, **options: Any) -> Generator[Worker]:
        """Start a worker that works at once."""
        with self.ready_worker(**options) as worker:
            worker.driver.send_start()
            yield worker

    @contextmanager
    def ready_worker(self, **options: Any) -> Generator[Worker]:
        """Start a worker that waits for the start signal."""
        with (
            tempfile.TemporaryDirectory(prefix="bench-calls-") as name,
            self.driver("work", folder=Path(name), **options) as driver,
        ):
            pid = int(driver.read("pid"))
            driver.wait_until_ready()
            yield Worker(driver, Path(name), pid)

    def drain(self, jobs: int, **options: Any) -> DrainResult:
        """Let a new worker run the waiting jobs, until all are settled."""
        settled_before = self.settled()
        self.postgres.checkpoint()
        with self.worker(**options) as worker:
            return self.measure_drain(worker, jobs, settled_before)

    def measure_drain(self, worker: Worker, jobs: int, settled_before: int) -> DrainResult:
        """Wait until a worker has run so many jobs, and check that each ran once."""
        rates, began = self.wait_for_calls(worker, jobs)
        ended = self.wait_until_settled(worker, settled_before + jobs)
        count, settled = worker.calls.count(), self.settled() - settled_before
        if (count.calls, count.sum, settled) != (jobs, jobs * (jobs - 1) // 2, jobs):
            raise InvalidMeasurement(
                f"handlers ran {count.calls} times, {settled} settled, of {jobs} jobs"
            )
        return DrainResult(jobs, (ended - began) / 1e9, rates)

    def wait_until_settled(self, worker: Worker, jobs: int) -> int:
        """Wait until so many jobs are settled; return when the last query was sent."""
        deadline = time.monotonic() + LONGEST_DRAIN
        while True:
            asked_ns = time.monotonic_ns()
            if (settled := self.settled()) >= jobs:
                return asked_ns
            _wait(worker, deadline, f"{settled} of {jobs} jobs were settled at the end")

    def drain_first(self, jobs: int, **options: Any) -> DrainResult:
        """Let a new worker run the first jobs of a longer line."""
        self.postgres.checkpoint()
        with self.worker(**options) as worker:
            rates, began = self.wait_for_calls(worker, jobs)
            calls = worker.calls.count().calls
            return DrainResult(calls, (time.monotonic_ns() - began) / 1e9, rates)

    def wait_for_calls(self, worker: Worker, jobs: int) -> tuple[list[Point], int]:
        """Wait for so many calls of handlers; return the rate over time and the first call."""
        rates: list[Point] = []
        deadline = time.monotonic() + LONGEST_DRAIN
        last_at, last_calls = 0, 0
        while (count := worker.calls.count()).calls < jobs:
            now = time.monotonic_ns()
            if count.first_ns and not last_at:
                last_at = count.first_ns
            if last_at and (passed := (now - last_at) / 1e9) >= SAMPLE_INTERVAL:
                at = (now - count.first_ns) / 1e9
                rates.append((round(at, 2), round((count.calls - last_calls) / passed)))
                last_at, last_calls = now, count.calls
            _wait(worker, deadline, f"{count.calls} of {jobs} jobs ran in {LONGEST_DRAIN:.0f} s")
        return rates, count.first_ns


def rates_each_second(worker: Worker, seconds: float) -> list[Point]:
    """Watch a worker for so long; return its calls in each second."""
    rates: list[Point] = []
    began = time.monotonic()
    last_calls, last_at = worker.calls.count().calls, began
    while (at := time.monotonic() - began) < seconds:
        worker.driver.check_alive()
        time.sleep(max(0.0, min(1.0 - (time.monotonic() - last_at), seconds - at)))
        calls, now = worker.calls.count().calls, time.monotonic()
        if now - last_at > SAMPLE_INTERVAL:
            rates.append((round(now - began, 2), round((calls - last_calls) / (now - last_at))))
            last_calls, last_at = calls, now
    return rates


def _wait(worker: Worker, deadline: float, problem: str) -> None:
    worker.driver.check_alive()
    if time.monotonic() > deadline:
        raise DriverFailed(problem)
    time.sleep(POLL)


@contextmanager
def new_testbed(postgres: Postgres) -> Generator[Testbed]:
    """Create a database, and install howdah in it."""
    with postgres.database() as dsn:
        asyncio.run(_install(dsn))
        yield Testbed(dsn, postgres)


async def _install(dsn: str) -> None:
    async with Queue(dsn) as queue:
        await queue.install()
