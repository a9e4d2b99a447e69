"""Ten processes install at once: one does it, all of them go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeAlias

import asyncpg
import pytest

from howdah import Queue
from howdah.store.install import check, install

pytestmark = pytest.mark.engine

INSTALLERS = 10

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"


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


async def test_an_upgrade_waits_for_work_under_way_and_nobody_hears_an_error(dsn: str) -> None:
    """A foreign worker is in the middle of something; behind the upgrade stands a plain INSERT."""
    async with AsyncExitStack() as stack:
        watcher, foreign, upgrader, producer = [
            await stack.enter_async_context(connected(dsn)) for _ in range(4)
        ]
        await watcher.execute("update howdah.installed set fingerprint = 'of other code'")
        job = await watcher.fetchval("select howdah.enqueue('mail')")
        await watcher.fetch("select howdah.claim_job_batch('foreign', '{mail}')")
        other = await watcher.fetchval("select howdah.enqueue('mail')")
        transaction = foreign.transaction()
        await transaction.start()
        await foreign.execute("update howdah.jobs set status = 'completed' where id = $1", job)
        upgrading = asyncio.create_task(install(upgrader))
        await until_blocked(watcher, upgrader)
        (claimed,) = await watcher.fetch("select id from howdah.claim_job_batch('w', '{mail}')")
        assert claimed["id"] == other, "claims go on meanwhile"
        inserting = asyncio.create_task(
            producer.fetchval("insert into howdah.jobs (job_type) values ('late') returning id")
        )
        await until_blocked(watcher, producer)
        await transaction.commit()
        assert await upgrading is True
        late = await inserting
        rows = await watcher.fetch("select id, status from howdah.jobs order by id")
    assert {(row["id"], row["status"]) for row in rows} == {
        (job, "completed"),
        (other, "claimed"),
        (late, "pending"),
    }


@asynccontextmanager
async def connected(dsn: str) -> AsyncGenerator[Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


async def until_blocked(watcher: Connection, other: Connection) -> None:
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1"
    async with asyncio.timeout(20):
        while not await watcher.fetchval(waits, other.get_server_pid()):
            await asyncio.sleep(0.002)
