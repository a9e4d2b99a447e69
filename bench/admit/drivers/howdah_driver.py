"""Driver of howdah."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import uvloop

from bench.admit.handler import Handler, Payload, keyed_payloads
from bench.call_counter import ADDRESS, CALLS_FOLDER
from bench.driver import Task, drive
from howdah import JobType, Queue, Rate

queue = Queue(os.environ[ADDRESS])
LIMIT = "bench"
CROWD = "key-0"  # whose jobs take a while, in the measurement of fair share
CROWD_SECONDS = 0.005
JOBS_OF_TENANT = 100
PICKUP_KEYS = 1000  # each job of a pickup finds its key free


def rule(task: Task) -> Mapping[str, Any]:
    """Return the options of the job type, and define the limit that they name."""
    slots = task.options["slots"]
    match task.options["kind"]:
        case "keys":
            return {"key": "key", "at_once": slots}
        case "ordered":
            return {"key": "key", "ordered": True}
        case "limit":
            queue.limit(LIMIT, at_once=slots)
            return {"limit": LIMIT}
        case "rate":
            queue.limit(LIMIT, rate=Rate(slots))
            return {"limit": LIMIT}
        case "fair":
            return {"key": "key", "fair": True}
        case _:
            return {}


def job_types(task: Task) -> tuple[JobType[..., Any], JobType[..., Any]]:
    """Register the two job types, both with the rule."""
    handler = Handler(task) if os.environ[CALLS_FOLDER] else None
    is_fair = task.options["kind"] == "fair"

    async def handle(number: int, rest: str, key: str) -> None:
        assert handler is not None
        if is_fair and key != CROWD:
            handler.picked_up(number)
            return
        await handler.handle(number)
        if is_fair:
            await asyncio.sleep(CROWD_SECONDS)

    async def pickup(number: int, rest: str, key: str) -> None:
        assert handler is not None
        handler.picked_up(number)

    options = rule(task)
    return queue.job(name="handle", **options)(handle), queue.job(name="pickup", **options)(pickup)


async def install(task: Task) -> None:
    """Install, and let a worker register the rule."""
    await queue.install()
    job_types(task)
    async with queue.worker():
        pass


async def enqueue_bulk(task: Task) -> None:
    handle, _ = job_types(task)
    payloads = keyed_payloads(task)
    await queue.workers()  # opens a connection
    with task.timed():
        await handle.enqueue_many(payloads)


async def enqueue_single(task: Task) -> None:
    handle, _ = job_types(task)
    payloads = keyed_payloads(task)
    await queue.workers()
    with task.timed():
        for job in payloads:
            await handle.enqueue(**job)


async def work(task: Task) -> None:
    job_types(task)
    await queue.workers()
    task.wait_for_start()
    await queue.worker(concurrency=task.options["concurrency"]).run()


async def send(task: Task) -> None:
    """Enqueue one job for each signal, each of another key than those before."""
    _, pickup = job_types(task)
    await queue.workers()
    task.wait_for_start()
    sent = 0
    async for job in task.timestamped_payloads_async():
        await pickup.enqueue(**job, key=f"key-{sent % PICKUP_KEYS}")
        sent += 1


async def send_tenant(task: Task) -> None:
    """Enqueue the jobs of a new tenant for each signal: all carry the same time."""
    handle, _ = job_types(task)
    await queue.workers()
    task.wait_for_start()
    nth = 0
    async for job in task.timestamped_payloads_async():
        nth += 1
        jobs: list[Payload] = [{**job, "key": f"tenant-{nth}"}] * JOBS_OF_TENANT
        await handle.enqueue_many(jobs)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, send_tenant, runner=uvloop.run)
