"""Pool: a few connections, each lent to one call at a time.

Lending one is a few attribute look-ups, because every enqueue pays for it. Connections are
opened when they are first needed, the one used last is lent first, and those that nobody needed
for a while are closed. None is reset between calls: no call of ours leaves session state.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from howdah.store.refusals import TROUBLE

if TYPE_CHECKING:
    import asyncpg

    Connection = asyncpg.Connection[asyncpg.Record]

IDLE = 300.0  # seconds after which a connection that nobody needs is closed
CLOSING = 2.0  # seconds to say goodbye to the server


class Closed(Exception):
    """The pool was closed while somebody waited for a connection."""


class Pool:
    """At most `size` connections, used in one event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size: int) -> None:
        self._connect = connect
        self._room = size  # how many more may be opened
        self._idle: list[tuple[Connection, float]] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._sweeping: asyncio.TimerHandle | None = None
        self._closed = False

    async def take(self) -> Connection:
        """Lend a connection; the borrower gives it back. Raises Closed once that has happened."""
        while True:
            if self._closed:
                raise Closed
            while self._idle:
                connection, _ = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._room += 1
            if self._room > 0:
                return await self._open()
            if (connection := await self._wait()) is not None:
                return connection

    def give(self, connection: Connection) -> None:
        """Take a connection back, and lend it to whoever has waited longest."""
        if self._closed:
            connection.terminate()
        elif connection.is_closed():
            self._room += 1
            self._pass_on(None)
        elif not self._pass_on(connection):
            self._idle.append((connection, time.monotonic()))
            if self._sweeping is None:
                self._sweeping = self._loop.call_later(IDLE, self._sweep)

    async def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        while self._pass_on(None):
            pass  # whoever waits finds out
        idle, self._idle = self._idle, []
        await asyncio.gather(*(_goodbye(connection) for connection, _ in idle))

    async def _open(self) -> Connection:
        self._room -= 1
        try:
            return await self._connect()
        except BaseException:
            self._room += 1
            self._pass_on(None)
            raise

    async def _wait(self) -> Connection | None:
        """Wait for a connection, or (None) for room to open one."""
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # given to us, too late
                if (connection := waiter.result()) is not None:
                    self.give(connection)
                else:
                    self._pass_on(None)
            raise

    def _pass_on(self, connection: Connection | None) -> bool:
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    def _sweep(self) -> None:
        """Close the connections that nobody has needed for long."""
        before = time.monotonic() - IDLE
        while self._idle and self._idle[0][1] <= before:
            connection, _ = self._idle.pop(0)
            self._room += 1
            connection.terminate()
        self._sweeping = (
            self._loop.call_later(self._idle[0][1] - before, self._sweep) if self._idle else None
        )


async def _goodbye(connection: Connection) -> None:
    with suppress(*TROUBLE):
        await connection.close(timeout=CLOSING)
