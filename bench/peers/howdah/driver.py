"""Driver of howdah. `floor` runs the worker's claim and complete statements without a worker."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

import asyncpg
import uvloop

from bench import producer
from bench.driver import Task, drive
from bench.peers.howdah.jobs import (
    handle,
    handle_in_process,
    handle_in_thread,
    pickup,
    queue,
    sleep,
)
from bench.producer import Payload

CLAIM_BATCH = 1000
HANDLES = {
    "async": handle,
    "sleep": sleep,
    "thread": handle_in_thread,
    "process": handle_in_process,
}

CLAIM = """
    select id, job_type, priority, data, attempts, max_attempts, date_part('epoch', ready_at),
           date_part('epoch', created_at), date_part('epoch', claimed_at)
      from howdah.async_commit(), howdah.claim($1, $2, $3, $4, $5, $6, $7)
"""
COMPLETE = """
    select case when count(*) < cardinality($2) then coalesce(array_agg(id), '{}') end
    from howdah.complete($1, $2, $3, $4, $5) as id
"""


def run_of(task: Task) -> str:
    return "sleep" if task.sleep else task.options.get("run", "async")


async def install(task: Task) -> None:
    await queue.install()


async def connect() -> None:
    await queue.workers()


async def enqueue_bulk(task: Task) -> None:
    job, payloads = HANDLES[run_of(task)], task.payloads()
    await connect()
    with task.timed():
        await job.enqueue_many(payloads)


async def enqueue_single(task: Task) -> None:
    payloads = task.payloads()
    await connect()
    with task.timed():
        for payload in payloads:
            await handle.enqueue(**payload)


async def work(task: Task) -> None:
    job = HANDLES[run_of(task)]
    await connect()
    task.wait_for_start()
    names = ("concurrency", "silent_after")
    settings = {name: task.options[name] for name in names if name in task.options}
    await queue.worker(job_types=[job.name, pickup.name], **settings).run()


async def send(task: Task) -> None:
    await connect()
    task.wait_for_start()
    async for payload in task.timestamped_payloads_async():
        await pickup.enqueue(**payload)


async def produce(task: Task) -> None:
    await connect()

    async def one(_: int, job: Payload) -> None:
        await pickup.enqueue(**job)

    async def many(_: int, jobs: list[Payload]) -> None:
        await pickup.enqueue_many(jobs)

    await producer.produce(task, one, many)


async def floor(task: Task) -> None:
    connections = [await asyncpg.connect(task.address) for _ in range(2)]
    with task.timed():
        await asyncio.gather(*map(_claim_and_complete, connections, ("one", "two")))
    for connection in connections:
        await connection.close()


async def _claim_and_complete(
    connection: asyncpg.Connection[asyncpg.Record], worker_id: str
) -> None:
    # imported here: the other verbs use public names only, so they run with older commits
    from howdah.claim.line import Line, Scan
    from howdah.job import Claim

    line = Line([handle.name])
    scan = line.next_scan(time.monotonic())
    while True:
        began = time.monotonic()
        rows = await connection.fetch(CLAIM, worker_id, CLAIM_BATCH, *scan.ranges)
        if rows:
            claims = [Claim(*row) for row in rows]
            now = time.monotonic()
            line.scanned(scan, claims, CLAIM_BATCH, now - began, now)
            ids, attempts = [claim.id for claim in claims], [claim.attempt for claim in claims]
            ran = [timedelta()] * len(rows)
            await connection.fetch(COMPLETE, worker_id, ids, attempts, None, ran)
            scan = line.next_scan(now)
        elif scan.whole:
            return
        else:
            scan = Scan(line.whole(), whole=True)


if __name__ == "__main__":
    drive(install, enqueue_bulk, enqueue_single, work, send, produce, floor, runner=uvloop.run)
