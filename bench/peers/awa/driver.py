"""Driver of Awa."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in an environment of its own, where the peer is and nothing of ours)

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from urllib.parse import urlsplit

import awa

from bench.driver import Task, drive, in_lots_of
from bench.tally import FOLDER, Tally

LOT = 5000


@dataclass
class Handle:
    number: int
    rest: str


@dataclass
class Pickup:
    number: int
    rest: str


def connect(task: Task) -> awa.AsyncClient:
    parts = urlsplit(task.address)  # its driver wants the user in another place
    return awa.AsyncClient(f"postgresql://{parts.path}?user={parts.username}&{parts.query}")


async def install(task: Task) -> None:
    client = connect(task)
    await client.migrate()
    await client.install_queue_storage()


async def enqueue_bulk(task: Task) -> None:
    client = connect(task)
    lots = list(in_lots_of(LOT, task.payloads()))
    with task.timed():
        for lot in lots:
            await client.enqueue_many_copy([Handle(**payload) for payload in lot])


async def enqueue_single(task: Task) -> None:
    client = connect(task)
    payloads = task.payloads()
    with task.timed():
        for payload in payloads:
            await client.insert(Handle(**payload))


async def work(task: Task) -> None:
    client = connect(task)
    tally = Tally(os.environ[FOLDER])

    @client.task(Handle)
    async def handle(job: awa.Job) -> None:
        tally.handled(job.args.number)

    @client.task(Pickup)
    async def pickup(job: awa.Job) -> None:
        tally.picked_up(job.args.number)

    task.go()
    await client.start([("default", 1024)], poll_interval_ms=50)
    await asyncio.Event().wait()


async def send(task: Task) -> None:
    client = connect(task)
    task.go()
    async for payload in task.moments_async():
        await client.insert(Pickup(**payload))


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send)
