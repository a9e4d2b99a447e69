"""Yard: a database with howdah in it, and the processes at work there, as a case sees them.

Comes before  cases.py, bad_days/, memory.py and growth/, which measure in it
Beside        hands.py, which runs in those processes

A drain is timed as in measure.py, from the first call of a handler until the store says that all
is settled, and counts only if every job ran once. What is settled is read from finished_counts:
asking the live jobs would cost more the worse the day is.
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
from typing import Any, LiteralString, NamedTuple, cast

import psycopg

from bench.findings import Point
from bench.install import ROOT, Environment
from bench.lots import NOOP, WARM_UP, drafts
from bench.measure import Wrong
from bench.process import Broken, Driver, started
from bench.server import Postgres
from bench.tally import Reader
from howdah import Queue

HANDS = Environment(ROOT, (sys.executable, "-m", "bench.hands"), {})
TICK = 0.002
MOMENT = 0.2  # seconds between two points of a drain's curve
LONGEST_DRAIN = 600.0
SETTLED = "select coalesce(sum(jobs), 0) from howdah.finished_counts where job_type <> %s"
INSERT_FINISHED = """
    insert into howdah.jobs (
        job_type, status, data, progress, worker_id, created_at, started_at, completed_at, attempts)
    select 'old', 'completed', jsonb_build_object('number', n, 'rest', repeat('x', 76)), 100,
           'somebody', now(), now(), now(), 1
    from generate_series(1, %s) as n
"""
AT_ONCE = 250_000  # finished jobs per INSERT: its trigger keeps the rows of a statement


@dataclass(frozen=True, slots=True)
class Drained:
    """What one drain gave: its length, and jobs per second moment by moment."""

    jobs: int
    seconds: float
    moments: list[Point]

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


class Claimed(NamedTuple):
    """One claim of a worker, as timed in its process."""

    began_ns: int
    took_ns: int
    jobs: int


class Worker:
    """A worker process, seen from outside."""

    def __init__(self, driver: Driver, folder: Path, pid: int) -> None:
        self.driver = driver
        self.folder = folder
        self.pid = pid
        self.tally = Reader(folder)

    def claims(self) -> list[Claimed]:
        found: list[Claimed] = []
        for path in self.folder.glob("*.claims"):
            content = path.read_bytes()
            numbers = memoryview(content[: len(content) // 24 * 24]).cast("q")
            found += map(Claimed, numbers[0::3], numbers[1::3], numbers[2::3])
        if not found:
            raise Wrong("the worker noted no claims")
        return sorted(found)


class Yard:
    """One database, with howdah installed."""

    def __init__(self, address: str, postgres: Postgres) -> None:
        self.address = address
        self.postgres = postgres

    def connect(self, *, autocommit: bool = True) -> psycopg.Connection:
        return psycopg.connect(self.address, autocommit=autocommit)

    def execute(self, sql: str) -> None:
        with self.connect() as connection:
            connection.execute(cast(LiteralString, sql))

    def settled(self) -> int:
        with self.connect() as connection:
            row = connection.execute(SETTLED, [WARM_UP]).fetchone()
        assert row is not None
        return int(row[0])

    def settle_down(self) -> None:
        """Leave neither autovacuum nor the checkpointer anything to do."""
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
            async with Queue(self.address) as queue:
                await queue.enqueue_many(drafts(queue, names, range(jobs), priorities, delay))

        if jobs:
            asyncio.run(run())

    def add_finished(self, jobs: int) -> None:
        """Put finished jobs there, as plain SQL may."""
        with self.connect() as connection:
            for first in range(0, jobs, AT_ONCE):
                connection.execute(INSERT_FINISHED, [min(AT_ONCE, jobs - first)])

    @contextmanager
    def hands(
        self, verb: str, jobs: int = 0, folder: Path | None = None, **options: Any
    ) -> Generator[Driver]:
        """Start a process of hands.py, and wait until it is ready."""
        arguments = {"address": self.address, "jobs": jobs, "options": options}
        with started(HANDS, verb, arguments, folder) as driver:
            yield driver

    @contextmanager
    def worker(self, **options: Any) -> Generator[Worker]:
        """Start a worker and let it loose."""
        with self.ready_worker(**options) as worker:
            worker.driver.go()
            yield worker

    @contextmanager
    def ready_worker(self, **options: Any) -> Generator[Worker]:
        """Start a worker that waits for the word."""
        with (
            tempfile.TemporaryDirectory(prefix="bench-tally-") as name,
            self.hands("work", folder=Path(name), **options) as driver,
        ):
            pid = int(driver.hear("pid"))
            driver.wait_until_ready()
            yield Worker(driver, Path(name), pid)

    def drain(self, jobs: int, **options: Any) -> Drained:
        """Let a new worker handle the waiting jobs; all are settled at the end."""
        before = self.settled()
        self.postgres.checkpoint()
        with self.worker(**options) as worker:
            return self.drained(worker, jobs, before)

    def drained(self, worker: Worker, jobs: int, before: int) -> Drained:
        """Watch a worker handle so many jobs; `before` are settled already."""
        moments, began = self.watch(worker, jobs)
        ended = self.until_settled(worker, before + jobs)
        count, done = worker.tally.count(), self.settled() - before
        if (count.calls, count.sum, done) != (jobs, jobs * (jobs - 1) // 2, jobs):
            raise Wrong(f"handlers ran {count.calls} times, {done} settled, of {jobs} jobs")
        return Drained(jobs, (ended - began) / 1e9, moments)

    def until_settled(self, worker: Worker, jobs: int) -> int:
        """Wait until so many jobs are settled; returns the moment in which that was asked."""
        until = time.monotonic() + LONGEST_DRAIN
        while True:
            asked = time.monotonic_ns()
            if (done := self.settled()) >= jobs:
                return asked
            _wait(worker, until, f"{done} of {jobs} jobs were settled at the end")

    def first_of(self, jobs: int, **options: Any) -> Drained:
        """Let a new worker handle the first so many of a longer line."""
        self.postgres.checkpoint()
        with self.worker(**options) as worker:
            moments, began = self.watch(worker, jobs)
            calls = worker.tally.count().calls
            return Drained(calls, (time.monotonic_ns() - began) / 1e9, moments)

    def watch(self, worker: Worker, jobs: int) -> tuple[list[Point], int]:
        """Wait until so many calls were made; returns the curve and when the first one was."""
        moments: list[Point] = []
        until = time.monotonic() + LONGEST_DRAIN
        last_at, last = 0, 0
        while (count := worker.tally.count()).calls < jobs:
            now = time.monotonic_ns()
            if count.first_ns and not last_at:
                last_at = count.first_ns
            if last_at and (passed := (now - last_at) / 1e9) >= MOMENT:
                at = (now - count.first_ns) / 1e9
                moments.append((round(at, 2), round((count.calls - last) / passed)))
                last_at, last = now, count.calls
            _wait(worker, until, f"{count.calls} of {jobs} jobs ran in {LONGEST_DRAIN:.0f} s")
        return moments, count.first_ns


def every_second(worker: Worker, seconds: float) -> list[Point]:
    """Watch a worker for so long; returns its calls second by second."""
    moments: list[Point] = []
    began = time.monotonic()
    last, last_at = worker.tally.count().calls, began
    while (at := time.monotonic() - began) < seconds:
        worker.driver.check_alive()
        time.sleep(max(0.0, min(1.0 - (time.monotonic() - last_at), seconds - at)))
        calls, now = worker.tally.count().calls, time.monotonic()
        if now - last_at > MOMENT:
            moments.append((round(now - began, 2), round((calls - last) / (now - last_at))))
            last, last_at = calls, now
    return moments


def _wait(worker: Worker, until: float, problem: str) -> None:
    worker.driver.check_alive()
    if time.monotonic() > until:
        raise Broken(problem)
    time.sleep(TICK)


@contextmanager
def yard(postgres: Postgres) -> Generator[Yard]:
    """Make a database and install howdah in it."""
    with postgres.database() as address:
        asyncio.run(_install(address))
        yield Yard(address, postgres)


async def _install(address: str) -> None:
    async with Queue(address) as queue:
        await queue.install()
