"""Driver of PgQueuer."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in an environment of its own, where the peer is and nothing of ours)

from __future__ import annotations

import asyncio
import json
import os

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.driver import Task, drive, in_lots_of
from bench.tally import FOLDER, Tally

BATCH = 500
LOT = 5000


async def connect(task: Task) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(task.address)))


async def install(task: Task) -> None:
    await (await connect(task)).install()


async def enqueue_bulk(task: Task) -> None:
    queries = await connect(task)
    lots = list(in_lots_of(LOT, task.payloads()))
    with task.timed():
        for lot in lots:
            texts = [json.dumps(payload).encode() for payload in lot]
            await queries.enqueue(["handle"] * len(lot), texts, [0] * len(lot))


async def enqueue_single(task: Task) -> None:
    queries = await connect(task)
    payloads = task.payloads()
    with task.timed():
        for payload in payloads:
            await queries.enqueue("handle", json.dumps(payload).encode())


async def work(task: Task) -> None:
    tally = Tally(os.environ[FOLDER])
    manager = QueueManager(await connect(task))

    def count(job: Job) -> None:
        tally.handled(json.loads(job.payload)["number"])

    async def handle(job: Job) -> None:
        count(job)

    async def handle_in_thread(job: Job) -> None:
        await asyncio.to_thread(count, job)

    async def pickup(job: Job) -> None:
        tally.picked_up(json.loads(job.payload)["number"])

    in_threads = task.options.get("run") == "thread"
    manager.entrypoint("handle")(handle_in_thread if in_threads else handle)
    manager.entrypoint("pickup")(pickup)
    task.go()
    await manager.run(batch_size=BATCH)


async def send(task: Task) -> None:
    queries = await connect(task)
    task.go()
    async for payload in task.moments_async():
        await queries.enqueue("pickup", json.dumps(payload).encode())


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
