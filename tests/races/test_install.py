"""Ten processes install at once: one does it, and all of them continue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeAlias

import asyncpg
import pytest

from howdah import Queue
from howdah.store.install import check, install
from tests.support.waiting import eventually

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


async def test_exactly_one_creates_the_schema(empty_dsn: str) -> None:
    assert sorted(await install_at_once(empty_dsn)) == [False] * (INSTALLERS - 1) + [True]
    async with Queue(empty_dsn) as queue:
        assert await queue.claim(["mail"], worker_id="first") == []


async def test_exactly_one_replaces_the_functions(dsn: str) -> None:
    connection = await asyncpg.connect(dsn)
    await connection.execute("update howdah.installed set fingerprint = 'of other code'")
    await connection.close()
    assert sorted(await install_at_once(dsn)) == [False] * (INSTALLERS - 1) + [True]


async def test_all_wait_for_the_one_that_installs(empty_dsn: str) -> None:
    """All installers wait for the lock at the same time."""
    holder = await asyncpg.connect(empty_dsn)
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute("select pg_advisory_xact_lock(1752135524, 3)")
    installing = asyncio.create_task(install_at_once(empty_dsn))
    waiting = (
        "select count(*) from pg_stat_activity "
        "where datname = current_database() and wait_event_type = 'Lock'"
    )

    async def all_wait() -> bool:
        await holder.execute("select pg_stat_clear_snapshot()")
        return await holder.fetchval(waiting) == INSTALLERS

    await eventually(all_wait, "every installer waits for the lock")
    await transaction.rollback()
    assert sorted(await installing) == [False] * (INSTALLERS - 1) + [True]
    await holder.close()


async def test_an_upgrade_waits_for_open_transactions_and_causes_no_error(dsn: str) -> None:
    """A foreign worker has an open transaction, and a plain INSERT waits for the upgrade."""
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
        await wait_until_blocked(watcher, upgrader)
        (claimed,) = await watcher.fetch("select id from howdah.claim_job_batch('w', '{mail}')")
        assert claimed["id"] == other, "claims continue during the upgrade"
        inserting = asyncio.create_task(
            producer.fetchval("insert into howdah.jobs (job_type) values ('late') returning id")
        )
        await wait_until_blocked(watcher, producer)
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


async def wait_until_blocked(watcher: Connection, other: Connection) -> None:
    waits = "select wait_event_type = 'Lock' from pg_stat_activity where pid = $1"
    await eventually(lambda: watcher.fetchval(waits, other.get_server_pid()))
