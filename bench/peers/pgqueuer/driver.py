"""Driver of PgQueuer."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import json
import os
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench import producer
from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive, in_batches_of
from bench.producer import Payload


async def connect(task: Task) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(task.address)))


async def connect_pool(task: Task, size: int) -> Queries:
    if size == 1:
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
    manager = QueueManager(await connect_pool(task, task.options["connections"]))

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
    settings = {}
    if seconds := task.options.get("silent_after"):
        settings["heartbeat_timeout"] = timedelta(seconds=seconds)
    await manager.run(batch_size=task.options["batch_size"], **settings)


async def send(task: Task) -> None:
    queries = await connect(task)
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await queries.enqueue("pickup", json.dumps(payload).encode())


async def produce(task: Task) -> None:
    queries = await connect_pool(task, task.options["producer_connections"])

    async def one(_: int, job: Payload) -> None:
        await queries.enqueue("pickup", json.dumps(job).encode())

    async def many(_: int, jobs: list[Payload]) -> None:
        texts = [json.dumps(job).encode() for job in jobs]
        await queries.enqueue(["pickup"] * len(jobs), texts, [0] * len(jobs))

    await producer.produce(task, one, many)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, produce, runner=uvloop.run)
