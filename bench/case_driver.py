"""Case driver: the worker and producer processes of the cases.

testbed.py starts it as `python -m bench.case_driver VERB ARGUMENTS`. driver.py has the protocol.

    work             run handlers until killed; `timed`: record each pickup
    produce          enqueue jobs with their time, at a steady rate or as fast as they are handled
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
from uuid import UUID

import uvloop

from bench import producer
from bench.call_counter import ADDRESS, CALLS_FOLDER, CallCounter
from bench.driver import Task, drive, payload, reply
from bench.memory_usage import peak_kib, resident_kib
from bench.producer import Payload
from bench.sample_jobs import MIXED, NOOP, PICKUP, UNCLAIMED, WAITING, WARM_UP, drafts
from howdah import Backoff, Cancel, JobContext, Queue
from howdah.job import Draft

TIMEOUT = 60.0
PAUSES = (0.003, 0.009)  # seconds between the jobs of a pickup measurement
COUNT_WATCHED = "select count(*) from howdah.jobs_live where watched"

queue = Queue(os.environ[ADDRESS])
_calls = CallCounter(os.environ[CALLS_FOLDER])


async def noop(number: int, rest: str) -> None:
    _calls.handled(number)


async def timed(number: int, rest: str) -> None:
    _calls.picked_up(number)
    _calls.handled(0)


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
    handler = timed if task.options.get("timed") else noop
    for name in names:
        if name not in queue.handlers:
            queue.job(name=name)(handler)
    settings = {
        name: task.options[name] for name in ("concurrency", "batch_size") if name in task.options
    }
    if jobs := task.options.get("warm_up", 0):
        await queue.enqueue_many(drafts(queue, [WARM_UP], range(jobs)))
        async with queue.worker(job_types=[WARM_UP], **settings) as worker:
            await worker.run_until_idle()
    await queue.workers()  # opens a connection
    task.wait_for_start()
    await queue.worker(job_types=names, **settings).run()


async def produce(task: Task) -> None:
    """Enqueue jobs that carry the time at which they were sent."""
    await queue.workers()  # opens a connection

    async def one(number: int, job: Payload) -> None:
        draft = _draft(task, number, job)
        await queue.enqueue(draft.job_type, job, priority=draft.priority)

    async def many(first: int, jobs: list[Payload]) -> None:
        await queue.enqueue_many(_draft(task, first + nth, job) for nth, job in enumerate(jobs))

    await producer.produce(task, one, many)


def _draft(task: Task, number: int, job: Payload) -> Draft:
    """Make a draft. Types and priorities are used in turn."""
    names: list[str] = task.options["names"]
    return queue.draft(
        names[number % len(names)],
        job,
        priority=100 + number // len(names) % int(task.options.get("priorities", 1)),
    )


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
