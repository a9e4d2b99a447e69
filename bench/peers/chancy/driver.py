"""Driver of Chancy."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import logging

import uvloop
from chancy import Chancy, Queue, Worker

from bench.driver import Task, drive
from bench.peers.chancy.jobs import handle, handle_in_thread, pickup, sleep

quiet = logging.getLogger("bench.chancy")
quiet.setLevel(logging.ERROR)


def connect(task: Task) -> Chancy:
    return Chancy(task.address, log=quiet)


def in_threads(task: Task) -> bool:
    return task.options.get("run") == "thread"


async def install(task: Task) -> None:
    async with connect(task) as chancy:
        await chancy.migrate()


async def enqueue_bulk(task: Task) -> None:
    job = sleep if task.sleep else handle_in_thread if in_threads(task) else handle
    async with connect(task) as chancy:
        payloads = task.payloads()
        with task.timed():
            jobs = [job.job.with_kwargs(**payload) for payload in payloads]
            async for _ in chancy.push_many(jobs, batch_size=task.options["enqueue_batch"]):
                pass


async def enqueue_single(task: Task) -> None:
    async with connect(task) as chancy:
        payloads = task.payloads()
        with task.timed():
            for payload in payloads:
                await chancy.push(handle.job.with_kwargs(**payload))


async def work(task: Task) -> None:
    executor = Chancy.Executor.Threaded if in_threads(task) else Chancy.Executor.Async
    queue = Queue(
        "default",
        concurrency=task.options["concurrency"],
        executor=executor,
        polling_interval=1,
        eager_polling=True,
    )
    async with connect(task) as chancy:
        await chancy.declare(queue, upsert=True)
        worker = Worker(chancy, register_signal_handlers=False)
        task.wait_for_start()
        await worker.start()
        await worker.wait_for_shutdown()


async def send(task: Task) -> None:
    async with connect(task) as chancy:
        task.wait_for_start()
        async for payload in task.timestamped_payloads_async():
            await chancy.push(pickup.job.with_kwargs(**payload))


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
