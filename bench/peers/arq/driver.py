"""Driver of arq."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import os
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings
from arq.worker import Worker, func

from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive

CONCURRENT_ENQUEUES = 20


def settings(task: Task) -> RedisSettings:
    return RedisSettings(unix_socket_path=task.address)


async def connect(task: Task) -> ArqRedis:
    redis = await create_pool(settings(task))
    await redis.ping()
    return redis


async def install(task: Task) -> None:
    """Nothing to do: Redis has no tables."""


async def enqueue_bulk(task: Task) -> None:
    redis = await connect(task)
    payloads = iter(task.payloads())

    async def enqueue_rest() -> None:
        for payload in payloads:
            await redis.enqueue_job("handle", **payload)

    with task.timed():
        await asyncio.gather(*(enqueue_rest() for _ in range(CONCURRENT_ENQUEUES)))


async def enqueue_single(task: Task) -> None:
    redis = await connect(task)
    payloads = task.payloads()
    with task.timed():
        for payload in payloads:
            await redis.enqueue_job("handle", **payload)


async def work(task: Task) -> None:
    calls = CallCounter(os.environ[CALLS_FOLDER])

    async def handle(ctx: dict[Any, Any], number: int, rest: str) -> None:
        calls.handled(number)
        if task.sleep:
            await asyncio.sleep(task.sleep)

    async def pickup(ctx: dict[Any, Any], number: int, rest: str) -> None:
        calls.picked_up(number)

    worker = Worker(
        [func(handle, name="handle"), func(pickup, name="pickup")],
        redis_settings=settings(task),
        handle_signals=False,
        max_jobs=task.options["max_jobs"],
        queue_read_limit=task.options["queue_read_limit"],
        poll_delay=0.01,
        keep_result=0,
    )
    task.wait_for_start()
    await worker.main()


async def send(task: Task) -> None:
    redis = await connect(task)
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await redis.enqueue_job("pickup", **payload)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
