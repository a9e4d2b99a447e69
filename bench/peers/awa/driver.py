"""Driver of Awa."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

import awa

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive, in_batches_of


@dataclass
class Handle:
    number: int
    rest: str


@dataclass
class Pickup:
    number: int
    rest: str


def connect(task: Task) -> awa.AsyncClient:
    parts = urlsplit(task.address)  # its driver takes the user as a parameter only
    return awa.AsyncClient(f"postgresql://{parts.path}?user={parts.username}&{parts.query}")


async def install(task: Task) -> None:
    client = connect(task)
    await client.migrate()
    await client.install_queue_storage()


async def enqueue_bulk(task: Task) -> None:
    client = connect(task)
    batches = list(in_batches_of(task.options["enqueue_batch"], task.payloads()))
    with task.timed():
        for batch in batches:
            await client.enqueue_many_copy([Handle(**payload) for payload in batch])


async def enqueue_single(task: Task) -> None:
    client = connect(task)
    payloads = task.payloads()
    with task.timed():
        for payload in payloads:
            await client.insert(Handle(**payload))


async def work(task: Task) -> None:
    client = connect(task)
    calls = CallCounter(os.environ[CALLS_FOLDER])

    @client.task(Handle)
    async def handle(job: awa.Job) -> None:
        calls.handled(job.args.number)
        if task.sleep:
            await asyncio.sleep(task.sleep)

    @client.task(Pickup)
    async def pickup(job: awa.Job) -> None:
        calls.picked_up(job.args.number)

    task.wait_for_start()
    await client.start([("default", task.options["max_workers"])], poll_interval_ms=50)
    await asyncio.Event().wait()


async def send(task: Task) -> None:
    client = connect(task)
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await client.insert(Pickup(**payload))


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send)
