"""Driver of PgQueuer."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import json
import os

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive, in_batches_of


async def connect(task: Task) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(task.address)))


async def connect_worker(task: Task) -> Queries:
    if (size := task.options["connections"]) == 1:
        return await connect(task)
    pool = await asyncpg.create_pool(task.address, min_size=size, max_size=size)
    return Queries(AsyncpgPoolDriver(pool))


async def install(task: Task) -> None:
    await (await connect(task)).install()


async def enqueue_bulk(task: Task) -> None:
    queries = await connect(task)
    batches = list(in_batches_of(task.options["enqueue_batch"], task.payloads()))
    with task.timed():
        for batch in batches:
            texts = [json.dumps(payload).encode() for payload in batch]
            await queries.enqueue(["handle"] * len(batch), texts, [0] * len(batch))


async def enqueue_single(task: Task) -> None:
    queries = await connect(task)
    payloads = task.payloads()
    with task.timed():
        for payload in payloads:
            await queries.enqueue("handle", json.dumps(payload).encode())


async def work(task: Task) -> None:
    calls = CallCounter(os.environ[CALLS_FOLDER])
    manager = QueueManager(await connect_worker(task))

    def count(job: Job) -> None:
        calls.handled(json.loads(job.payload)["number"])

    async def handle(job: Job) -> None:
        count(job)
        if task.sleep:
            await asyncio.sleep(task.sleep)

    async def handle_in_thread(job: Job) -> None:
        await asyncio.to_thread(count, job)

    async def pickup(job: Job) -> None:
        calls.picked_up(json.loads(job.payload)["number"])

    in_threads = task.options.get("run") == "thread"
    manager.entrypoint("handle")(handle_in_thread if in_threads else handle)
    manager.entrypoint("pickup")(pickup)
    task.wait_for_start()
    await manager.run(batch_size=task.options["batch_size"])


async def send(task: Task) -> None:
    queries = await connect(task)
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await queries.enqueue("pickup", json.dumps(payload).encode())


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
