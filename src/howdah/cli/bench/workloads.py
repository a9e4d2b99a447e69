"""Workloads: what is measured; each runs on jobs of its own, which are deleted at the end.

The handler does nothing and a payload has 100 bytes, so the queue is measured and not the work.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

import msgspec

from howdah import Queue
from howdah.cli.bench.cost import Cost, Meter
from howdah.store.bench import delete_jobs_of_types

ReportProgress = Callable[[str, int, int], None]  # workload, jobs done, jobs in total


class Measurement(msgspec.Struct, frozen=True):
    """One workload: the number of jobs, their cost, and their latencies if measured."""

    workload: str
    jobs: int
    cost: Cost
    latencies: list[float] = []  # seconds, sorted

    def percentile(self, part: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(part * len(self.latencies)))]


class Workloads:
    """The workloads on one queue."""

    def __init__(
        self, queue: Queue, *, jobs: int, concurrency: int, report: ReportProgress
    ) -> None:
        self._queue = queue
        self._jobs = jobs
        self._concurrency = concurrency
        self._report = report
        self._done = 0
        self._began_at = 0.0
        self._began = asyncio.Event()
        name = f"howdah.bench.{secrets.token_hex(4)}"
        self._text = "x" * 88  # with key and quotes, a payload of 100 bytes

        @queue.job(name=name)
        async def noop(text: str) -> None:
            self._done += 1

        @queue.job(name=f"{name}.ping")
        async def ping(text: str) -> None:
            self._began_at = time.perf_counter()
            self._began.set()

        self._noop, self._ping = noop, ping

    async def measure_all(self) -> list[Measurement]:
        try:
            return [
                await self.enqueue_many(),
                await self.drain(),
                await self.enqueue_single(),
                await self.pickup(),
            ]
        finally:
            await self._delete_jobs()

    async def enqueue_many(self) -> Measurement:
        async with Meter(self._queue) as meter:
            await self._noop.enqueue_many(
                self._noop.draft(text=self._text) for _ in range(self._jobs)
            )
        self._report("enqueue_many", self._jobs, self._jobs)
        return Measurement("enqueue_many", self._jobs, meter.cost)

    async def drain(self) -> Measurement:
        """Run the jobs of enqueue_many; starting and stopping the worker is not measured."""
        self._done = 0
        async with (
            self._queue.worker(
                concurrency=self._concurrency, job_types=[self._noop.name]
            ) as worker,
            Meter(self._queue) as meter,
        ):
            reporting = asyncio.create_task(self._report_progress("drain"))
            await worker.run_until_idle()
            reporting.cancel()
        self._report("drain", self._jobs, self._jobs)
        return Measurement("drain", self._jobs, meter.cost)

    async def _report_progress(self, workload: str) -> None:
        while True:
            self._report(workload, self._done, self._jobs)
            await asyncio.sleep(0.1)

    async def enqueue_single(self) -> Measurement:
        """Enqueue one by one, each with a commit."""
        jobs = max(1, min(self._jobs, 2000))
        async with Meter(self._queue) as meter:
            for n in range(jobs):
                await self._noop.enqueue(text=self._text)
                if n % 100 == 0:
                    self._report("enqueue", n, jobs)
        self._report("enqueue", jobs, jobs)
        return Measurement("enqueue", jobs, meter.cost)

    async def pickup(self) -> Measurement:
        """Enqueue on an idle queue; measure from the call to the first line of the handler."""
        samples = max(1, min(self._jobs, 500))
        latencies: list[float] = []
        worker = self._queue.worker(concurrency=10, job_types=[self._ping.name])
        async with worker, Meter(self._queue) as meter:
            for n in range(samples):
                self._began.clear()
                before = time.perf_counter()
                await self._ping.enqueue(text=self._text)
                await asyncio.wait_for(self._began.wait(), timeout=30)
                latencies.append(self._began_at - before)
                await asyncio.sleep(0.002)  # let the worker become idle again
                self._report("pickup", n + 1, samples)
        return Measurement("pickup", samples, meter.cost, sorted(latencies))

    async def _delete_jobs(self) -> None:
        await delete_jobs_of_types(self._queue.store, [self._noop.name, self._ping.name])
