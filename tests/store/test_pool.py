"""The pool: lends what is there, opens late, hands on to who waited longest, forgets the broken."""

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


class _Opened:
    """Opens real connections and remembers them."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self.connections: list[Connection] = []
        self.broken = False

    async def __call__(self) -> Connection:
        if self.broken:
            raise OSError("no way")
        connection = await asyncpg.connect(self._dsn)
        self.connections.append(connection)
        return connection


@pytest.fixture
async def opened(empty_dsn: str) -> AsyncGenerator[_Opened]:
    opened = _Opened(empty_dsn)
    yield opened
    for connection in opened.connections:
        connection.terminate()


async def test_a_connection_given_back_is_lent_again(opened: _Opened) -> None:
    pool = Pool(opened, 2)
    first = await pool.take()
    pool.give(first)
    assert await pool.take() is first
    assert len(opened.connections) == 1


async def test_no_more_than_its_size_are_opened_and_who_waited_longest_comes_first(
    opened: _Opened,
) -> None:
    pool = Pool(opened, 1)
    lent = await pool.take()
    order: list[str] = []

    async def borrow(name: str) -> None:
        connection = await pool.take()
        order.append(name)
        pool.give(connection)

    tasks = [asyncio.create_task(borrow(name)) for name in ("first", "second", "third")]
    await asyncio.sleep(0)  # all of them wait now
    assert not order
    pool.give(lent)
    await asyncio.gather(*tasks)
    assert order == ["first", "second", "third"]
    assert len(opened.connections) == 1


async def test_a_broken_connection_is_not_lent_again(opened: _Opened) -> None:
    pool = Pool(opened, 1)
    broken = await pool.take()
    pool.give(broken)
    broken.terminate()
    fresh = await pool.take()
    assert fresh is not broken
    assert await fresh.fetchval("select 1") == 1


async def test_who_waits_for_a_connection_that_breaks_opens_another(opened: _Opened) -> None:
    pool = Pool(opened, 1)
    broken = await pool.take()
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    broken.terminate()
    pool.give(broken)
    assert await (await waiting).fetchval("select 1") == 1


async def test_a_connection_that_cannot_be_opened_keeps_no_place(opened: _Opened) -> None:
    pool = Pool(opened, 1)
    opened.broken = True
    for _ in range(3):
        with pytest.raises(OSError, match="no way"):
            await pool.take()
    opened.broken = False
    assert await (await pool.take()).fetchval("select 1") == 1


async def test_who_gives_up_waiting_loses_no_connection(opened: _Opened) -> None:
    pool = Pool(opened, 1)
    lent = await pool.take()
    waiting = asyncio.create_task(pool.take())
    await asyncio.sleep(0)
    pool.give(lent)  # it is waiting's now, who gives up before it can know
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await pool.take() is lent


async def test_what_nobody_needs_is_closed(
    opened: _Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_pool, "IDLE", 0.01)
    pool = Pool(opened, 2)
    pool.give(await pool.take())
    await eventually(lambda: opened.connections[0].is_closed())
    assert await (await pool.take()).fetchval("select 1") == 1


async def test_a_closed_pool_closes_what_is_idle_at_once_and_what_is_lent_later(
    opened: _Opened,
) -> None:
    pool = Pool(opened, 2)
    lent, idle = await pool.take(), await pool.take()
    pool.give(idle)
    await pool.close()
    assert idle.is_closed()
    assert await lent.fetchval("select 1") == 1
    pool.give(lent)
    assert lent.is_closed()
