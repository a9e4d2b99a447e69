"""Driver of PgQueuer: an entrypoint per key, and `concurrency_limit`."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import json
from datetime import timedelta

import asyncpg
import uvloop
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.qm import QueueManager
from pgqueuer.queries import Queries

from bench.admit.handler import Handler, Payload, keyed_payloads
from bench.driver import Task, drive, in_batches_of


async def connect(task: Task) -> Queries:
    return Queries(AsyncpgDriver(await asyncpg.connect(task.address)))


def entrypoint_of(task: Task, job: Payload) -> str:
    return "handle" if task.options["kind"] == "limit" else job["key"]


async def install(task: Task) -> None:
    await (await connect(task)).install()


async def enqueue_bulk(task: Task) -> None:
    queries = await connect(task)
    with task.timed():
        for batch in in_batches_of(task.options["enqueue_batch"], keyed_payloads(task)):
            names = [entrypoint_of(task, job) for job in batch]
            texts = [json.dumps(job).encode() for job in batch]
            await queries.enqueue(names, texts, [0] * len(batch))


async def enqueue_single(task: Task) -> None:
    queries = await connect(task)
    payloads = keyed_payloads(task)
    with task.timed():
        for job in payloads:
            await queries.enqueue(entrypoint_of(task, job), json.dumps(job).encode())


async def work(task: Task) -> None:
    handler = Handler(task)
    manager = QueueManager(await connect(task))

    async def handle(job: Job) -> None:
        await handler.handle(json.loads(job.payload)["number"])

    names = {entrypoint_of(task, {"key": f"key-{key}"}) for key in range(task.options["keys"])}
    for name in sorted(names):
        manager.entrypoint(name, concurrency_limit=task.options["slots"])(handle)
    task.wait_for_start()
    timeout = timedelta(milliseconds=task.options["dequeue_timeout_ms"])
    await manager.run(batch_size=task.options["batch_size"], dequeue_timeout=timeout)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, runner=uvloop.run)
