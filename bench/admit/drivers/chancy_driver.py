"""Driver of Chancy: the concurrency of a queue, which counts per worker, and its rate limit."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import logging

import uvloop
from chancy import Chancy, Queue, Worker

from bench.admit.drivers.chancy_jobs import handle, handlers
from bench.admit.handler import Handler, keyed_payloads
from bench.driver import Task, drive

quiet = logging.getLogger("bench.chancy")
quiet.setLevel(logging.ERROR)


def connect(task: Task) -> Chancy:
    return Chancy(task.address, log=quiet)


async def install(task: Task) -> None:
    async with connect(task) as chancy:
        await chancy.migrate()


async def enqueue_bulk(task: Task) -> None:
    async with connect(task) as chancy:
        jobs = [handle.job.with_kwargs(**payload) for payload in keyed_payloads(task)]
        with task.timed():
            async for _ in chancy.push_many(jobs, batch_size=task.options["enqueue_batch"]):
                pass


async def enqueue_single(task: Task) -> None:
    async with connect(task) as chancy:
        payloads = keyed_payloads(task)
        with task.timed():
            for payload in payloads:
                await chancy.push(handle.job.with_kwargs(**payload))


async def work(task: Task) -> None:
    slots = task.options["slots"]
    is_rate = task.options["kind"] == "rate"
    queue = Queue(
        "default",
        concurrency=task.options["concurrency"] if is_rate else slots,
        rate_limit=slots if is_rate else None,
        rate_limit_window=1 if is_rate else None,
        executor=Chancy.Executor.Async,
        polling_interval=1,
        eager_polling=True,
    )
    handlers.append(Handler(task))
    async with connect(task) as chancy:
        await chancy.declare(queue, upsert=True)
        worker = Worker(chancy, register_signal_handlers=False)
        task.wait_for_start()
        await worker.start()
        await worker.wait_for_shutdown()


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, runner=uvloop.run)
