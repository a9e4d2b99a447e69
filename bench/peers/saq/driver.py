"""Driver of SAQ on Redis."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import os
from typing import Any

import uvloop
from redis.asyncio import Redis
from saq import Worker
from saq.queue.redis import RedisQueue

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive

CONCURRENT_ENQUEUES = 50


async def connect(task: Task) -> RedisQueue:
    redis = Redis(unix_socket_path=task.address)
    await redis.ping()
    return RedisQueue(redis, max_concurrent_ops=CONCURRENT_ENQUEUES)


async def install(task: Task) -> None:
    """Nothing to do: Redis has no tables."""


async def enqueue_bulk(task: Task) -> None:
    queue = await connect(task)
    payloads = iter(task.payloads())

    async def enqueue_rest() -> None:
        for payload in payloads:
            await queue.enqueue("handle", **payload)

    with task.timed():
        await asyncio.gather(*(enqueue_rest() for _ in range(CONCURRENT_ENQUEUES)))


async def enqueue_single(task: Task) -> None:
    queue = await connect(task)
    payloads = task.payloads()
    with task.timed():
        for payload in payloads:
            await queue.enqueue("handle", **payload)


async def work(task: Task) -> None:
    queue = await connect(task)
    calls = CallCounter(os.environ[CALLS_FOLDER])

    async def handle(ctx: dict[Any, Any], *, number: int, rest: str) -> None:
        calls.handled(number)
        if task.sleep:
            await asyncio.sleep(task.sleep)

    def handle_in_thread(ctx: dict[Any, Any], *, number: int, rest: str) -> None:
        calls.handled(number)

    async def pickup(ctx: dict[Any, Any], *, number: int, rest: str) -> None:
        calls.picked_up(number)

    in_threads = task.options.get("run") == "thread"
    worker = Worker(
        queue,
        functions=[("handle", handle_in_thread if in_threads else handle), ("pickup", pickup)],
        concurrency=task.options["concurrency"],
    )
    task.wait_for_start()
    await worker.start()


async def send(task: Task) -> None:
    queue = await connect(task)
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await queue.enqueue("pickup", **payload)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
