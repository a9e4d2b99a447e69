"""The database goes away and comes back: the worker waits, and no result is lost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from howdah import JobContext, Queue, State
from howdah.embedded import join
from tests.support.waiting import eventually


async def test_cut_connections_lose_no_job_and_no_settlement(queue: Queue, dsn: str) -> None:
    runs: dict[int, int] = {}

    @queue.job(max_attempts=20)
    async def work(ctx: JobContext, n: int) -> None:
        runs[n] = runs.get(n, 0) + 1
        ctx.emit("ran")
        await asyncio.sleep(0.001)

    await work.enqueue_many(work.draft(n=n) for n in range(3000))
    async with Queue(dsn) as operator, queue.worker(concurrency=50):
        for part in (300, 900, 1500):
            await eventually(lambda part=part: len(runs) > part)
            await operator.store.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )
        await eventually(lambda: all_completed(operator, 3000))
    assert len(runs) == 3000


async def all_completed(queue: Queue, total: int) -> bool:
    return (await queue.counts())["work"] == {State.COMPLETED: total}


@pytest.mark.slow
async def test_a_worker_waits_for_a_server_that_restarts(tmp_path: Path) -> None:
    home = tmp_path / "pg"
    server = join(home)
    may_end, started = asyncio.Event(), asyncio.Event()
    queue = Queue(server.dsn)
    await queue.install()

    @queue.job
    async def patient() -> str:
        started.set()
        await may_end.wait()
        return "still here"

    handle = await patient.enqueue()
    try:
        async with queue.worker():
            await asyncio.wait_for(started.wait(), timeout=10)
            await asyncio.to_thread(server.stop)
            may_end.set()  # the job ends while the database is stopped
            server = await asyncio.to_thread(join, home)
            assert await handle.result(timeout=30) == "still here"
            again = await patient.enqueue()
            assert await again.result(timeout=30) == "still here"
        assert (await handle.job()).attempts == 1
    finally:
        await queue.close()
        server.stop()
        server.release()
