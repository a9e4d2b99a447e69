"""A worker settles again when a deadlock with a foreign UPDATE ended its call."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import asyncpg
import pytest

from howdah import Queue, State
from tests.support.waiting import eventually

# PostgreSQL then ends the call of the worker, not the foreign UPDATE.
DEADLOCK_TIMEOUT = "set deadlock_timeout = '1min'"


async def test_an_ending_is_written_after_a_deadlock_with_a_plain_update(
    queue: Queue, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "howdah.settle")
    may_end = asyncio.Event()

    @queue.job
    async def waits(n: int) -> int:
        await may_end.wait()
        return n

    low, high = [await waits.enqueue(n=n) for n in range(2)]
    foreign, watcher = [await asyncpg.connect(dsn) for _ in range(2)]
    await foreign.execute(DEADLOCK_TIMEOUT)

    async def both_run() -> bool:
        return {(await handle.job()).status for handle in (low, high)} == {State.RUNNING}

    async def settling_waits() -> bool:
        return await watcher.fetchval(
            "select exists (select from pg_stat_activity where datname = current_database() "
            "and wait_event_type = 'Lock' and query like '%howdah.complete%')"
        )

    async with queue.worker(poll=timedelta(seconds=1)):
        await eventually(both_run)
        transaction = foreign.transaction()
        await transaction.start()
        touch = "update howdah.jobs set current_stage = 'touched' where id = $1"
        await foreign.execute(touch, high.id)
        may_end.set()
        await eventually(settling_waits)  # it locked the lower job and waits for the higher
        # PostgreSQL ends the settling call, and this one continues
        await foreign.execute(touch, low.id)
        await transaction.commit()
        assert [await handle.result(timeout=20) for handle in (low, high)] == [0, 1]
    for connection in (foreign, watcher):
        await connection.close()
    assert any("deadlock detected" in record.getMessage() for record in caplog.records)
    for handle in (low, high):
        job = await handle.job()
        assert (job.attempts, job.current_stage) == (1, "touched")
