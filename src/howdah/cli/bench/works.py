"""Works: what is measured, each on jobs of its own that are removed afterwards.

A no-op handler and a payload of 100 bytes: what is measured is the queue, not the work.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

import msgspec

from howdah import Queue
from howdah.cli.bench.cost import Cost, Meter

Tell = Callable[[str, int, int], None]  # the work's name, done, of how many


class Measured(msgspec.Struct, frozen=True):
    """One work: how many jobs, what they cost, and their latencies where those matter."""

    work: str
    jobs: int
    cost: Cost
    latencies: list[float] = []  # seconds, sorted

    def percentile(self, part: float) -> float:
        return self.latencies[min(len(self.latencies) - 1, int(part * len(self.latencies)))]


class Works:
    """The works on one queue."""

    def __init__(self, queue: Queue, *, jobs: int, concurrency: int, tell: Tell) -> None:
        self._queue = queue
        self._jobs = jobs
        self._concurrency = concurrency
        self._tell = tell
        self._done = 0
        self._began_at = 0.0
        self._began = asyncio.Event()
        name = f"howdah.bench.{secrets.token_hex(4)}"
        self._text = "x" * 88  # with its name and quotes, a payload of 100 bytes

        @queue.job(name=name)
        async def noop(text: str) -> None:
            self._done += 1

        @queue.job(name=f"{name}.ping")
        async def ping(text: str) -> None:
            self._began_at = time.perf_counter()
            self._began.set()

        self._noop, self._ping = noop, ping

    async def all(self) -> list[Measured]:
        try:
            return [
                await self.enqueue_many(),
                await self.drain(),
                await self.enqueue_single(),
                await self.pickup(),
            ]
        finally:
            await self._remove()

    async def enqueue_many(self) -> Measured:
        async with Meter(self._queue) as meter:
            await self._noop.enqueue_many(
                self._noop.draft(text=self._text) for _ in range(self._jobs)
            )
        self._tell("enqueue_many", self._jobs, self._jobs)
        return Measured("enqueue_many", self._jobs, meter.cost)

    async def drain(self) -> Measured:
        """Work off what enqueue_many left; the worker's start and stop are not counted."""
        self._done = 0
        async with (
            self._queue.worker(
                concurrency=self._concurrency, job_types=[self._noop.name]
            ) as worker,
            Meter(self._queue) as meter,
        ):
            watching = asyncio.create_task(self._watch("drain"))
            await worker.run_until_idle()
            watching.cancel()
        self._tell("drain", self._jobs, self._jobs)
        return Measured("drain", self._jobs, meter.cost)

    async def _watch(self, work: str) -> None:
        while True:
            self._tell(work, self._done, self._jobs)
            await asyncio.sleep(0.1)

    async def enqueue_single(self) -> Measured:
        """Enqueue one after the other, each committed."""
        jobs = max(1, min(self._jobs, 2000))
        async with Meter(self._queue) as meter:
            for n in range(jobs):
                await self._noop.enqueue(text=self._text)
                if n % 100 == 0:
                    self._tell("enqueue", n, jobs)
        self._tell("enqueue", jobs, jobs)
        return Measured("enqueue", jobs, meter.cost)

    async def pickup(self) -> Measured:
        """Enqueue on an idle system; time from before the call to the handler's first line."""
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
                await asyncio.sleep(0.002)  # let the system fall idle again
                self._tell("pickup", n + 1, samples)
        return Measured("pickup", samples, meter.cost, sorted(latencies))

    async def _remove(self) -> None:
        """Leave the queue as it was found."""
        await self._queue.store.fetch(
            "delete from howdah.jobs where job_type = any ($1)", [self._noop.name, self._ping.name]
        )
