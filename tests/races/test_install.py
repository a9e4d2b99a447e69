"""Ten processes install at once: one does it, all of them go on."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from howdah import Queue
from howdah.store.install import check, install

pytestmark = pytest.mark.engine

INSTALLERS = 10


async def install_at_once(dsn: str) -> list[bool]:
    connections = [await asyncpg.connect(dsn) for _ in range(INSTALLERS)]
    try:
        done = await asyncio.gather(*(install(connection) for connection in connections))
        for connection in connections:
            await check(connection)
        return done
    finally:
        for connection in connections:
            await connection.close()


async def test_exactly_one_makes_the_schema(empty_dsn: str) -> None:
    assert sorted(await install_at_once(empty_dsn)) == [False] * (INSTALLERS - 1) + [True]
    async with Queue(empty_dsn) as queue:
        assert await queue.claim(["mail"], worker_id="first") == []


async def test_exactly_one_replaces_the_functions(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("update howdah.installed set fingerprint = 'of other code'")
    await connection.close()
    assert sorted(await install_at_once(dsn)) == [False] * (INSTALLERS - 1) + [True]


async def test_all_wait_for_the_one_that_is_at_it(empty_dsn: str) -> None:
    """Held at the lock together, so that they truly meet there."""
    gate = await asyncpg.connect(empty_dsn)
    transaction = gate.transaction()
    await transaction.start()
    await gate.execute("select pg_advisory_xact_lock(1752135524, 3)")
    installing = asyncio.create_task(install_at_once(empty_dsn))
    waiting = (
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    )
    async with asyncio.timeout(20):
        while await gate.fetchval(waiting) < INSTALLERS:
            await asyncio.sleep(0.01)
            await gate.execute("select pg_stat_clear_snapshot()")
    await transaction.rollback()
    assert sorted(await installing) == [False] * (INSTALLERS - 1) + [True]
    await gate.close()
