"""The pool opens connections late, serves waiting calls in order, and drops broken connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

import asyncpg
import pytest

from howdah.store import pool as store_pool
from howdah.store.pool import Pool
from tests.support.waiting import eventually

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]


class _Connector:
    """Opens real connections and keeps a list of them."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.connections: list[Connection] = []
        self.broken = False

    async def __call__(self) -> Connection:
        if self.broken:
            raise OSError("cannot connect")
        connection = await asyncpg.connect(self._dsn)
        self.connections.append(connection)
        return connection


@pytest.fixture
async def connector(empty_dsn: str) -> AsyncGenerator[_Connector]:
    connector = _Connector(empty_dsn)
    yield connector
    for connection in connector.connections:
        connection.terminate()


async def test_a_released_connection_is_reused(connector: _Connector) -> None:
    pool = Pool(connector, 2)
    first = await pool.acquire()
    pool.release(first)
    assert await pool.acquire() is first
    assert len(connector.connections) == 1


async def test_the_pool_keeps_to_its_size_and_serves_waiting_calls_in_order(
    connector: _Connector,
) -> None:
    pool = Pool(connector, 1)
    used = await pool.acquire()
    order: list[str] = []

    async def acquire(name: str) -> None:
        connection = await pool.acquire()
        order.append(name)
        pool.release(connection)

    tasks = [asyncio.create_task(acquire(name)) for name in ("first", "second", "third")]
    await asyncio.sleep(0)  # all tasks wait now
    assert not order
    pool.release(used)
    await asyncio.gather(*tasks)
    assert order == ["first", "second", "third"]
    assert len(connector.connections) == 1


async def test_a_broken_connection_is_not_reused(connector: _Connector) -> None:
    pool = Pool(connector, 1)
    broken = await pool.acquire()
    pool.release(broken)
    broken.terminate()
    fresh = await pool.acquire()
    assert fresh is not broken
    assert await fresh.fetchval("select 1") == 1


async def test_a_waiting_call_opens_a_new_connection_if_the_old_one_breaks(
    connector: _Connector,
) -> None:
    pool = Pool(connector, 1)
    broken = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    broken.terminate()
    pool.release(broken)
    assert await (await waiting).fetchval("select 1") == 1


async def test_a_failed_connection_attempt_takes_no_place_in_the_pool(
    connector: _Connector,
) -> None:
    pool = Pool(connector, 1)
    connector.broken = True
    for _ in range(3):
        with pytest.raises(OSError, match="cannot connect"):
            await pool.acquire()
    connector.broken = False
    assert await (await pool.acquire()).fetchval("select 1") == 1


async def test_a_cancelled_wait_loses_no_connection(connector: _Connector) -> None:
    pool = Pool(connector, 1)
    used = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await asyncio.sleep(0)
    pool.release(used)  # assigned to `waiting`, which is cancelled before it runs
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await pool.acquire() is used


async def test_an_idle_connection_is_closed_after_the_timeout(
    connector: _Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_pool, "IDLE_TIMEOUT", 0.01)
    pool = Pool(connector, 2)
    pool.release(await pool.acquire())
    await eventually(lambda: connector.connections[0].is_closed())
    assert await (await pool.acquire()).fetchval("select 1") == 1


async def test_close_closes_idle_connections_at_once_and_used_ones_on_release(
    connector: _Connector,
) -> None:
    pool = Pool(connector, 2)
    used, idle = await pool.acquire(), await pool.acquire()
    pool.release(idle)
    await pool.close()
    assert idle.is_closed()
    assert await used.fetchval("select 1") == 1
    pool.release(used)
    assert used.is_closed()


async def test_a_close_that_is_cancelled_at_once_closes_every_connection(
    connector: _Connector,
) -> None:
    pool = Pool(connector, 2)
    for connection in [await pool.acquire(), await pool.acquire()]:
        pool.release(connection)
    closing = asyncio.create_task(pool.close())
    await asyncio.sleep(0)  # its tasks exist, and none has begun
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert all(connection.is_closed() for connection in connector.connections)
