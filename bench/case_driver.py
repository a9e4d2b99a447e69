"""Case driver: the worker and producer processes of the cases.

testbed.py starts it as `python -m bench.case_driver VERB ARGUMENTS`. driver.py has the protocol.

    work             run handlers until killed
    produce          enqueue at a steady rate, or as fast as jobs are handled
    send             enqueue single jobs with pauses, beside idle waits if `waits` says so
    enqueue_batches  enqueue with enqueue_many, timed, in batches of `batch_size`
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import uvloop

from bench.call_counter import ADDRESS, CALLS_FOLDER, CallCounter, CallReader
from bench.claim_timing import time_claims
from bench.driver import Task, drive, payload, reply
from bench.memory_usage import peak_kib, resident_kib
from bench.sample_jobs import MIXED, NOOP, PICKUP, UNCLAIMED, WAITING, WARM_UP, drafts
from howdah import Backoff, Cancel, JobContext, Queue

PRODUCE_INTERVAL = 0.05  # seconds between two batches of a producer
TIMEOUT = 60.0
PAUSES = (0.003, 0.009)  # seconds between the jobs of a pickup measurement
COUNT_WATCHED = "select count(*) from howdah.jobs_live where watched"

queue = Queue(os.environ[ADDRESS])
_calls = CallCounter(os.environ[CALLS_FOLDER])


async def noop(number: int, rest: str) -> None:
    _calls.handled(number)


@queue.job(name=WAITING)
async def waiting(number: int, rest: str) -> None:
    _calls.handled(number)
    await asyncio.sleep(0.01)


@queue.job(name=PICKUP)
async def pickup(number: int, rest: str) -> None:
    _calls.picked_up(number)


@queue.job(name=WARM_UP)
async def warm_up(number: int, rest: str) -> None:
    """Runs before the start signal, so that connections and plans exist."""


@queue.job(name=MIXED, backoff=Backoff(first=timedelta(milliseconds=100)))
async def mixed(ctx: JobContext, number: int, rest: str) -> None:
    """Of a hundred jobs, five fail once, ten report progress ten times, one is cancelled."""
    kind = number % 100
    if kind < 5 and ctx.attempt == 1:
        raise RuntimeError("the first attempt fails")
    _calls.handled(number)
    if 5 <= kind < 15:
        for step in range(10):
            await ctx.progress(step * 10, f"step {step}")
    elif kind == 15:
        raise Cancel("it is not needed")


async def work(task: Task) -> None:
    reply(pid=os.getpid())
    names: list[str] = task.options.get("names", [NOOP])
    for name in names:
        if name not in queue.handlers:
            queue.job(name=name)(noop)
    settings = {
        name: task.options[name] for name in ("concurrency", "batch_size") if name in task.options
    }
    if jobs := task.options.get("warm_up", 0):
        await queue.enqueue_many(drafts(queue, [WARM_UP], range(jobs)))
        async with queue.worker(job_types=[WARM_UP], **settings) as worker:
            await worker.run_until_idle()
    await queue.workers()  # opens a connection
    if task.options.get("time_claims"):
        time_claims(Path(os.environ[CALLS_FOLDER]))
    task.wait_for_start()
    await queue.worker(job_types=names, **settings).run()


async def produce(task: Task) -> None:
    """Keep to the rate: a batch that is late is larger."""
    seconds = float(task.options["seconds"])
    rate, ahead = float(task.options.get("rate", 0)), int(task.options.get("ahead", 0))
    calls = CallReader(Path(os.environ[CALLS_FOLDER]))
    await queue.workers()
    task.wait_for_start()
    began = time.monotonic()
    sent = 0
    while (passed := time.monotonic() - began) < seconds:
        due = int(passed * rate) - sent if rate else ahead - (sent - calls.count().calls)
        if due > 0:
            await queue.enqueue_many(drafts(queue, [NOOP], range(sent, sent + due)))
            sent += due
        pause = max(0.0, passed + PRODUCE_INTERVAL - (time.monotonic() - began))
        await asyncio.sleep(pause if rate else 0.005)
    reply(produced=sent)


async def send(task: Task) -> None:
    waits = await open_idle_waits(task.options.get("waits", 0))
    task.wait_for_start()
    for _ in range(task.jobs):
        await asyncio.sleep(random.uniform(*PAUSES))
        await pickup.enqueue(**payload(time.monotonic_ns()))
    reply(sent=True)
    for wait in waits:
        wait.cancel()
    await asyncio.gather(*waits, return_exceptions=True)


async def open_idle_waits(count: int) -> list[asyncio.Task[object]]:
    """Wait for jobs that no worker takes, and report how much memory the waits need."""
    unclaimed = list(drafts(queue, [UNCLAIMED], range(count + 1)))
    ids = [draft.id for draft in unclaimed]
    await queue.enqueue_many(unclaimed)
    del unclaimed
    first = await _open_waits(ids[:1], 1)  # the first wait also opens a connection
    gc.collect()
    before = resident_kib()
    others = await _open_waits(ids[1:], count + 1)
    gc.collect()
    reply(kib=resident_kib() - before)
    return [*first, *others]


async def _open_waits(ids: list[UUID], watched: int) -> list[asyncio.Task[object]]:
    waits = [asyncio.create_task(queue.handle(id).result()) for id in ids]
    async with asyncio.timeout(TIMEOUT):
        while await queue.store.fetchval(COUNT_WATCHED) < watched:  # noqa: ASYNC110 - in the database
            await asyncio.sleep(0.05)
    return waits


async def enqueue_batches(task: Task) -> None:
    """Enqueue jobs from a generator, and report the peak size of this process."""
    batch_size = task.options.get("batch_size", task.jobs)
    await queue.workers()
    with task.timed():
        for first in range(0, task.jobs, batch_size):
            numbers = range(first, min(first + batch_size, task.jobs))
            await queue.enqueue_many(drafts(queue, [NOOP], numbers))
    reply(peak_kib=peak_kib())


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        drive(work, produce, send, enqueue_batches, runner=uvloop.run)
