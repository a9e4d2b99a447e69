"""Producer: enqueue jobs that carry the time at which they were sent.

They come at a steady rate, whether or not the worker keeps up. Without a rate the producer keeps a
line of a fixed length ahead of the worker. Up to `OPENLY` jobs a second each call is made at its
time, for one job or for `per_call` jobs, and the log of the sent jobs shows which were answered. A
call that fails, because the server is away, is not repeated. driver.mjs does the same for the Node
peers.

Uses only the standard library, because it runs inside every peer's environment.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench.call_counter import CALLS_FOLDER
from bench.driver import Task, payload
from bench.pickup_log import SENT, PickupReader, TimesLog

OPENLY = 1000  # jobs/s up to which no call waits for those before it
MOST_OPEN = 500  # calls under way at once
INTERVAL = 0.01  # seconds between two batches
PAUSE = 0.001  # seconds until the length of the line is looked at again

Payload = dict[str, Any]
One = Callable[[int, Payload], Awaitable[object]]  # takes the number of the job
Many = Callable[[int, list[Payload]], Awaitable[object]]  # takes the number of the first job


async def produce(task: Task, one: One, many: Many) -> None:
    """Wait for the start signal, and enqueue jobs for as long as the task says."""
    task.wait_for_start()
    end = time.monotonic() + float(task.options["seconds"])
    rate, ahead = int(task.options.get("rate", 0)), int(task.options.get("ahead", 0))
    if not rate:
        await _keep_ahead(many, ahead, end)
    elif rate <= OPENLY:
        await _OpenCalls(one, many, int(task.options.get("per_call", 1))).run(rate, end)
    else:
        await _enqueue_in_batches(many, rate, end)


class _OpenCalls:
    """Calls that are made at their time, whether or not those before them have an answer."""

    def __init__(self, one: One, many: Many, size: int) -> None:
        self._one, self._many, self._size = one, many, size
        self._log = TimesLog(_folder(), SENT)
        self._open: set[asyncio.Task[None]] = set()
        self._failed = False

    async def run(self, rate: int, end: float) -> None:
        began = time.monotonic()
        for first in itertools.count(step=self._size):
            if (due := began + first / rate) > end:
                return
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            if len(self._open) < MOST_OPEN:
                call = asyncio.create_task(self._call(first))
                self._open.add(call)
                call.add_done_callback(self._open.discard)

    async def _call(self, first: int) -> None:
        jobs = _payloads(self._size)
        try:
            await (self._one(first, jobs[0]) if self._size == 1 else self._many(first, jobs))
        except Exception as error:
            self._add(jobs, 0)
            if not self._failed:
                print(f"the first call that failed: {error!r}", file=sys.stderr, flush=True)
            self._failed = True
        else:
            self._add(jobs, time.monotonic_ns())

    def _add(self, jobs: list[Payload], answered_ns: int) -> None:
        for job in jobs:
            self._log.add(job["number"], answered_ns)


async def _enqueue_in_batches(many: Many, rate: int, end: float) -> None:
    """Keep to the rate: a batch that is late is larger."""
    began = time.monotonic()
    sent = 0
    while (now := time.monotonic()) < end:
        due = int((now - began) * rate)
        await many(sent, _payloads(due - sent))
        sent = due
        await asyncio.sleep(max(0.0, now + INTERVAL - time.monotonic()))


async def _keep_ahead(many: Many, ahead: int, end: float) -> None:
    """Keep the line of the worker at this length."""
    pickups = PickupReader(_folder())
    sent = 0
    while time.monotonic() < end:
        due = pickups.count() + ahead
        if due <= sent:
            await asyncio.sleep(PAUSE)
        else:
            await many(sent, _payloads(due - sent))
            sent = due


def _payloads(jobs: int) -> list[Payload]:
    return [payload(time.monotonic_ns()) for _ in range(jobs)]


def _folder() -> Path:
    return Path(os.environ[CALLS_FOLDER])
