"""Driver of Procrastinate: a lock per key. Its jobs run one at a time and in order."""

# pyright: basic, reportMissingImports=false, reportAttributeAccessIssue=false
# (this file runs in the peer's own environment, which does not have our dependencies)

from __future__ import annotations

from collections import defaultdict

import procrastinate
import uvloop

from bench.admit.handler import Handler, Payload, keyed_payloads
from bench.driver import Task, drive, in_batches_of


def app_for(task: Task, connections: int = 1, handler: Handler | None = None) -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(
        conninfo=task.address, min_size=connections, max_size=connections
    )
    app = procrastinate.App(connector=connector)

    @app.task(name="handle")
    async def handle(number: int, rest: str, key: str) -> None:
        assert handler is not None
        await handler.handle(number)

    return app


async def install(task: Task) -> None:
    async with app_for(task).open_async() as app:
        await app.schema_manager.apply_schema_async()


async def enqueue_bulk(task: Task) -> None:
    by_key: defaultdict[str, list[Payload]] = defaultdict(list)
    for job in keyed_payloads(task):
        by_key[job["key"]].append(job)
    async with app_for(task).open_async() as app:
        handle = app.tasks["handle"]
        with task.timed():
            for key, jobs in by_key.items():
                for batch in in_batches_of(task.options["enqueue_batch"], jobs):
                    await handle.configure(lock=key).batch_defer_async(*batch)


async def enqueue_single(task: Task) -> None:
    async with app_for(task).open_async() as app:
        handle = app.tasks["handle"]
        payloads = keyed_payloads(task)
        with task.timed():
            for job in payloads:
                await handle.configure(lock=job["key"]).defer_async(**job)


async def work(task: Task) -> None:
    concurrency = task.options["concurrency"]
    async with app_for(task, concurrency, Handler(task)).open_async() as app:
        task.wait_for_start()
        await app.run_worker_async(concurrency=concurrency, listen_notify=True)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, runner=uvloop.run)
