"""Pool: a few connections, each used by one call at a time.

Acquiring a connection takes only a few attribute look-ups, because every enqueue pays for it.
Connections are opened when they are first needed. The one that was used last is used first, and
connections that are idle for long are closed. None is reset between calls: no call leaves
session state behind.

A pool belongs to one event loop and is closed with it. `asyncio.run` and every other runner ends a
loop by closing its async generators: the pool has such a generator, which closes it.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING

from howdah.store.connection_limit import ConnectionLimit
from howdah.store.errors import CONNECTION_ERRORS

if TYPE_CHECKING:
    import asyncpg

    Connection = asyncpg.Connection[asyncpg.Record]

IDLE_TIMEOUT = 300.0  # seconds after which an idle connection is closed
CLOSE_TIMEOUT = 2.0  # seconds for an orderly end of a connection


class PoolClosed(Exception):
    """The pool was closed while a call waited for a connection."""


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
        self._unopened = size  # how many more may be opened
        self._limit = limit or ConnectionLimit(size)  # shared with the pools of other loops
        self._timeout = timeout  # seconds to wait for another loop
        self._ask_others = ask_others
        self._loop_end: AsyncGenerator[None, None] | None = None
        self._idle: list[tuple[Connection, float]] = []
        self._waiting: deque[asyncio.Future[Connection | None]] = deque()
        self._loop = asyncio.get_running_loop()
        self._idle_timer: asyncio.TimerHandle | None = None
        self._closed = False

    async def acquire(self) -> Connection:
        """Return a connection that the caller releases; raises PoolClosed once it is closed."""
        while True:
            if self._closed:
                raise PoolClosed
            while self._idle:
                connection, _ = self._idle.pop()
                if not connection.is_closed():
                    return connection
                self._count_closed()
            if self._unopened == self._size or (self._unopened > 0 and self._limit.try_acquire()):
                return await self._open()
            if (connection := await self._wait()) is not None:
                return connection

    def release(self, connection: Connection) -> None:
        """Take a connection back, and pass it to the call that has waited longest."""
        if self._closed:
            connection.terminate()
            self._count_closed()
        elif connection.is_closed():
            self._count_closed()
            self._wake_waiter(None)
        elif self._limit.waiting:  # another loop has none at all
            connection.terminate()
            self._count_closed()
            self._wake_waiter(None)
        elif not self._wake_waiter(connection):
            self._idle.append((connection, time.monotonic()))
            if self._idle_timer is None:
                self._idle_timer = self._loop.call_later(IDLE_TIMEOUT, self._close_idle)

    def close_one_idle(self) -> None:
        """Close an idle connection if another loop waits; called on the pool's own loop."""
        if self._idle and self._limit.waiting:
            connection, _ = self._idle.pop(0)
            connection.terminate()
            self._count_closed()

    async def close_with_loop(self, on_close: Callable[[Pool], None]) -> None:
        """Close the pool when its loop ends, and call `on_close`."""

        async def until_loop_ends() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                on_close(self)
                await self._close()

        self._loop_end = until_loop_ends()
        await anext(self._loop_end)

    def abandon(self) -> None:
        """Close the sockets at once: the loop is closed, so nothing can be awaited."""
        self._closed = True
        for connection, _ in self._idle:
            with suppress(Exception):
                _socket_of(connection).shutdown(SHUT_RDWR)
        self._idle.clear()
        self._limit.release(self._size - self._unopened)
        self._unopened = self._size

    async def close(self) -> None:
        """Close the idle connections now, and the others when they are released."""
        loop_end, self._loop_end = self._loop_end, None
        if loop_end is not None:
            await loop_end.aclose()
        else:
            await self._close()

    async def _close(self) -> None:
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        while self._wake_waiter(None):
            pass  # each waiter sees that the pool is closed
        idle, self._idle = self._idle, []
        try:
            await asyncio.gather(*(close_connection(connection) for connection, _ in idle))
        finally:  # if this was cancelled, some tasks of gather may never have begun
            for connection, _ in idle:
                connection.terminate()
                self._count_closed()

    async def _open(self) -> Connection:
        """Open a connection; the first of a loop may have to wait for another loop."""
        first = self._unopened == self._size
        self._unopened -= 1
        try:
            if first:
                await self._limit.acquire(self._timeout, self._ask_others)
        except BaseException:
            self._unopened += 1
            self._wake_waiter(None)
            raise
        try:
            return await self._connect()
        except BaseException:
            self._count_closed()
            self._wake_waiter(None)
            raise

    def _count_closed(self) -> None:
        """Count a closed connection: another may be opened, here or by another loop."""
        self._unopened += 1
        self._limit.release()

    async def _wait(self) -> Connection | None:
        """Wait for a connection; None: the caller may open one, or the pool is closed."""
        waiter: asyncio.Future[Connection | None] = self._loop.create_future()
        self._waiting.append(waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # cancelled after it got a connection
                if (connection := waiter.result()) is not None:
                    self.release(connection)
                else:
                    self._wake_waiter(None)
            raise

    def _wake_waiter(self, connection: Connection | None) -> bool:
        """Pass a connection, or None, to the first waiter; returns whether there was one."""
        while self._waiting:
            waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return True
        return False

    def _close_idle(self) -> None:
        """Close the connections that were idle for long."""
        before = time.monotonic() - IDLE_TIMEOUT
        while self._idle and self._idle[0][1] <= before:
            connection, _ = self._idle.pop(0)
            connection.terminate()
            self._count_closed()
        self._idle_timer = (
            self._loop.call_later(self._idle[0][1] - before, self._close_idle)
            if self._idle
            else None
        )


def _socket_of(connection: Connection) -> socket:
    transport = connection._transport  # type: ignore[attr-defined]  # pyright: ignore
    return transport.get_extra_info("socket")  # pyright: ignore


async def close_connection(connection: Connection) -> None:
    """Close a connection in order, but do not wait for long."""
    with suppress(*CONNECTION_ERRORS):
        await connection.close(timeout=CLOSE_TIMEOUT)
