"""Driver of Procrastinate."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in an environment of its own, where the peer is and nothing of ours)

from __future__ import annotations

import os

import procrastinate
import uvloop

from bench.driver import Task, drive, in_lots_of
from bench.tally import FOLDER, Tally

CONCURRENCY = 20
LOT = 5000

tally = Tally(os.environ[FOLDER])


def app_for(task: Task, connections: int = 1) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(
        conninfo=task.address, min_size=connections, max_size=connections
    )
    app = procrastinate.App(connector=connector)

    async def handle(number: int, rest: str) -> None:
        tally.handled(number)

    def handle_plainly(number: int, rest: str) -> None:
        tally.handled(number)

    async def pickup(number: int, rest: str) -> None:
        tally.picked_up(number)

    in_threads = task.options.get("run") == "thread"
    app.task(name="handle")(handle_plainly if in_threads else handle)
    app.task(name="pickup")(pickup)
    return app


async def install(task: Task) -> None:
    async with app_for(task).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def enqueue_bulk(task: Task) -> None:
    async with app_for(task).open_async() as app:
        handle = app.tasks["handle"]
        lots = list(in_lots_of(LOT, task.payloads()))
        with task.timed():
            for lot in lots:
                await handle.batch_defer_async(*lot)


async def enqueue_single(task: Task) -> None:
    async with app_for(task).open_async() as app:
        handle = app.tasks["handle"]
        payloads = task.payloads()
        with task.timed():
            for payload in payloads:
                await handle.defer_async(**payload)


async def work(task: Task) -> None:
    async with app_for(task, CONCURRENCY).open_async() as app:
        task.go()
        await app.run_worker_async(concurrency=CONCURRENCY, listen_notify=True)


async def send(task: Task) -> None:
    async with app_for(task).open_async() as app:
        pickup = app.tasks["pickup"]
        task.go()
        async for payload in task.moments_async():
            await pickup.defer_async(**payload)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, runner=uvloop.run)
