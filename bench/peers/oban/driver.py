"""Driver of Oban for Python."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio

import uvloop
from oban import Oban, schema

from bench.driver import Task, drive, in_batches_of
from bench.peers.oban.jobs import handle, handle_plain, pickup, sleep

CONNECTIONS = 10


def job_of(task: Task):
    if task.sleep:
        return sleep
    return handle_plain if task.options.get("run") == "plain" else handle


async def install(task: Task) -> None:
    pool = await Oban.create_pool(task.address)
    await schema.install(pool)
    await pool.close()


async def enqueue_bulk(task: Task) -> None:
    pool = await Oban.create_pool(task.address)
    oban, job = Oban(pool=pool), job_of(task)
    batches = list(in_batches_of(task.options["enqueue_batch"], task.payloads()))
    with task.timed():
        for batch in batches:
            await oban.enqueue_many(job.new(**payload) for payload in batch)
    await pool.close()


async def enqueue_single(task: Task) -> None:
    pool = await Oban.create_pool(task.address)
    oban, payloads = Oban(pool=pool), task.payloads()
    with task.timed():
        for payload in payloads:
            await oban.enqueue(handle.new(**payload))
    await pool.close()


async def work(task: Task) -> None:
    pool = await Oban.create_pool(task.address, min_size=CONNECTIONS, max_size=CONNECTIONS)
    oban = Oban(pool=pool, queues={"default": task.options["limit"]})
    task.wait_for_start()
    await oban.start()
    await asyncio.Event().wait()


async def send(task: Task) -> None:
    pool = await Oban.create_pool(task.address)
    oban = Oban(pool=pool)
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await oban.enqueue(pickup.new(**payload))


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
