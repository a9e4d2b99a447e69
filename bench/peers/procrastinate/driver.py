"""Driver of Procrastinate."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

import asyncio
import os

import procrastinate
import uvloop

from bench import producer
from bench.call_counter import CALLS_FOLDER, CallCounter
from bench.driver import Task, drive, in_batches_of
from bench.producer import Payload

calls = CallCounter(os.environ[CALLS_FOLDER])


def app_for(task: Task, connections: int = 1) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(
        conninfo=task.address, min_size=connections, max_size=connections
    )
    app = procrastinate.App(connector=connector)

    async def handle(number: int, rest: str) -> None:
        calls.handled(number)
        if task.sleep:
            await asyncio.sleep(task.sleep)

    def handle_sync(number: int, rest: str) -> None:
        calls.handled(number)

    async def pickup(number: int, rest: str) -> None:
        calls.picked_up(number)

    in_threads = task.options.get("run") == "thread"
    app.task(name="handle")(handle_sync if in_threads else handle)
    app.task(name="pickup")(pickup)
    return app


async def install(task: Task) -> None:
    async with app_for(task).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def enqueue_bulk(task: Task) -> None:
    async with app_for(task).open_async() as app:
        handle = app.tasks["handle"]
        batches = list(in_batches_of(task.options["enqueue_batch"], task.payloads()))
        with task.timed():
            for batch in batches:
                await handle.batch_defer_async(*batch)


async def enqueue_single(task: Task) -> None:
    async with app_for(task).open_async() as app:
        handle = app.tasks["handle"]
        payloads = task.payloads()
        with task.timed():
            for payload in payloads:
                await handle.defer_async(**payload)


async def work(task: Task) -> None:
    concurrency = task.options["concurrency"]
    settings = {"concurrency": concurrency, "listen_notify": True}
    async with app_for(task, concurrency).open_async() as app:
        task.wait_for_start()
        if (seconds := task.options.get("silent_after")) is None:
            await app.run_worker_async(**settings)
            return
        beats = {"update_heartbeat_interval": seconds / 3, "stalled_worker_timeout": seconds}
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(retry_stalled_jobs(app, seconds))
            tasks.create_task(app.run_worker_async(**settings, **beats))


async def retry_stalled_jobs(app: procrastinate.App, seconds: float) -> None:
    """Do what its documentation asks users to do: jobs of silent workers do not come back alone."""
    while True:
        await asyncio.sleep(seconds / 3)
        manager = app.job_manager
        for job in await manager.get_stalled_jobs(seconds_since_heartbeat=seconds):
            await manager.retry_job(job)


async def send(task: Task) -> None:
    async with app_for(task).open_async() as app:
        pickup = app.tasks["pickup"]
        task.wait_for_start()
        async for payload in task.timestamped_payloads_async():
            await pickup.defer_async(**payload)


async def produce(task: Task) -> None:
    async with app_for(task, task.options["producer_connections"]).open_async() as app:
        pickup = app.tasks["pickup"]

        async def one(_: int, job: Payload) -> None:
            await pickup.defer_async(**job)

        async def many(_: int, jobs: list[Payload]) -> None:
            await pickup.batch_defer_async(*jobs)

        await producer.produce(task, one, many)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, produce, runner=uvloop.run)
