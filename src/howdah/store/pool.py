"""Pool: a few connections, each lent to one call at a time.

Lending one is a few attribute look-ups, because every enqueue pays for it. Connections are
opened when they are first needed, the one used last is lent first, and those that nobody needed
for a while are closed. None is reset between calls: no call of ours leaves session state.

A pool belongs to one event loop and is closed with it. `asyncio.run` and every other runner ends a
loop by closing its async generators, so a generator that waits for that closes the pool.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING

from howdah.errors import Unreachable
from howdah.store.connection_limit import ConnectionLimit
from howdah.store.errors import CONNECTION_ERRORS

if TYPE_CHECKING:
    import asyncpg

    Connection = asyncpg.Connection[asyncpg.Record]

IDLE = 300.0  # seconds after which a connection that nobody needs is closed
CLOSING = 2.0  # seconds to say goodbye to the server


class Closed(Exception):
    """The pool was closed while somebody waited for a connection."""


class Pool:
    """At most `size` connections, used in one event loop."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[Connection]],
        size: int,
        limit: ConnectionLimit | None = None,
        timeout: float | None = None,
        ask_others: Callable[[], None] = lambda: None,
    ) -> None:
        self._connect = connect
        self._size = size
        self._room = size  # how many more may be opened
        self._limit = limit or ConnectionLimit(size)  # shared with the pools of other loops
        self._timeout = timeout  # seconds to wait for another loop
        self._ask_others = ask_others
        self._ending: AsyncGenerator[None, None] | None = None
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
                self._gone()
            if self._room == self._size or (self._room > 0 and self._limit.try_take()):
                return await self._open()
            if (connection := await self._wait()) is not None:
                return connection

    def give(self, connection: Connection) -> None:
        """Take a connection back, and lend it to whoever has waited longest."""
        if self._closed:
            connection.terminate()
            self._gone()
        elif connection.is_closed():
            self._gone()
            self._pass_on(None)
        elif self._limit.waiting:  # another loop has none at all
            connection.terminate()
            self._gone()
            self._pass_on(None)
        elif not self._pass_on(connection):
            self._idle.append((connection, time.monotonic()))
            if self._sweeping is None:
                self._sweeping = self._loop.call_later(IDLE, self._sweep)

    def spare_one(self) -> None:
        """Close a connection that nobody uses, for another loop; called on the pool's own loop."""
        if self._idle and self._limit.waiting:
            connection, _ = self._idle.pop(0)
            connection.terminate()
            self._gone()

    async def end_with_loop(self, ended: Callable[[Pool], None]) -> None:
        """Have the pool closed when its loop ends, and `ended` told."""

        async def until_loop_ends() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                ended(self)
                await self._close()

        self._ending = until_loop_ends()
        await anext(self._ending)

    def abandon(self) -> None:
        """Let go of everything; the loop is closed, so nobody can be waited for."""
        self._closed = True
        for connection, _ in self._idle:
            with suppress(Exception):
                _socket_of(connection).shutdown(SHUT_RDWR)
        self._idle.clear()
        self._limit.give(self._size - self._room)
        self._room = self._size

    async def close(self) -> None:
        """Close what is idle now, and what is lent when it comes back."""
        ending, self._ending = self._ending, None
        if ending is not None:
            await ending.aclose()
        else:
            await self._close()

    async def _close(self) -> None:
        self._closed = True
        if self._sweeping is not None:
            self._sweeping.cancel()
        while self._pass_on(None):
            pass  # whoever waits finds out
        idle, self._idle = self._idle, []
        await asyncio.gather(*(_goodbye(connection) for connection, _ in idle))
        for _ in idle:
            self._gone()

    async def _open(self) -> Connection:
        """Open a connection; the first of a loop may have to wait for another loop."""
        first = self._room == self._size
        self._room -= 1
        try:
            if first:
                await self._wait_for_limit()
        except BaseException:
            self._room += 1
            self._pass_on(None)
            raise
        try:
            return await self._connect()
        except BaseException:
            self._gone()
            self._pass_on(None)
            raise

    async def _wait_for_limit(self) -> None:
        try:
            await self._limit.take(self._timeout, self._ask_others)
        except TimeoutError:
            raise Unreachable(
                f"all {self._limit.total} connections that this queue may have over all its event "
                "loops are in use: use SyncQueue in threads instead of asyncio.run, or give the "
                "queue more with connections="
            ) from None

    def _gone(self) -> None:
        """One connection less: another may be opened, here or by another loop."""
        self._room += 1
        self._limit.give()

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
            connection.terminate()
            self._gone()
        self._sweeping = (
            self._loop.call_later(self._idle[0][1] - before, self._sweep) if self._idle else None
        )


def _socket_of(connection: Connection) -> socket:
    transport = connection._transport  # type: ignore[attr-defined]  # pyright: ignore
    return transport.get_extra_info("socket")  # pyright: ignore


async def _goodbye(connection: Connection) -> None:
    with suppress(*CONNECTION_ERRORS):
        await connection.close(timeout=CLOSING)
