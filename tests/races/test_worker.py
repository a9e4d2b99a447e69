"""A worker whose settling is ended by a deadlock settles again: a foreign UPDATE knows no order."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta

import asyncpg
import pytest

from howdah import Queue, State
from tests.support.waiting import eventually

DEADLOCK_TIMEOUT = (
    "set deadlock_timeout = '1min'"  # so that it is not the foreign one that is ended
)


async def test_a_deadlock_with_a_plain_update_costs_an_ending_nothing_but_time(
    queue: Queue, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "howdah.settle")
    go_on = asyncio.Event()

    @queue.job
    async def waits(n: int) -> int:
        await go_on.wait()
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
        go_on.set()
        await eventually(settling_waits)  # it has the lower one and stands at the higher
        await foreign.execute(touch, low.id)  # ends the settling, then goes on
        await transaction.commit()
        assert [await handle.result(timeout=20) for handle in (low, high)] == [0, 1]
    for connection in (foreign, watcher):
        await connection.close()
    assert any("deadlock detected" in record.getMessage() for record in caplog.records)
    for handle in (low, high):
        job = await handle.job()
        assert (job.attempts, job.current_stage) == (1, "touched")
