"""Connection limit: how many connections a store may have over all its event loops.

Every loop has a pool of its own. A loop without any connection waits until another loop closes one.
A loop that has some waits for its own. Several threads use this object, so it has a lock, and a
waiter is woken through its own loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable

from howdah.errors import Unreachable


class _Waiter:
    """A loop that waits until it may open a connection."""

    __slots__ = ("future", "granted", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.granted = False  # set under the lock; True: one connection is counted for it

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class ConnectionLimit:
    """At most `total` connections at a time, in whichever loop."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.waiting: deque[_Waiter] = deque()
        self._left = total
        self._mutex = threading.Lock()

    def try_acquire(self) -> bool:
        """Count one more connection, if one is left and no loop waits for it."""
        with self._mutex:
            if self._left <= 0 or self.waiting:
                return False
            self._left -= 1
            return True

    async def acquire(self, timeout: float | None, ask_others: Callable[[], None]) -> None:
        """Wait until one more is allowed; `ask_others` makes other loops close an idle one.

        Raises Unreachable after `timeout` seconds.
        """
        waiter = _Waiter()
        with self._mutex:
            if self._left > 0:
                self._left -= 1
                return
            self.waiting.append(waiter)
        try:
            ask_others()
            async with asyncio.timeout(timeout):
                await waiter.future
        except BaseException as error:
            with self._mutex:
                if not waiter.granted:
                    self.waiting.remove(waiter)
            if waiter.granted:
                self.release()
            if isinstance(error, TimeoutError):
                raise Unreachable(
                    f"all {self.total} connections that this queue may have over all its event "
                    "loops are in use: use SyncQueue in threads instead of asyncio.run, or give "
                    "the queue more with connections="
                ) from None
            raise

    def release(self, count: int = 1) -> None:
        """Report that so many connections are closed."""
        with self._mutex:
            self._left += count
            while self._left > 0 and self.waiting:
                waiter = self.waiting.popleft()
                waiter.granted = True
                try:
                    waiter.loop.call_soon_threadsafe(waiter.wake)
                except RuntimeError:  # that loop is closed
                    continue
                self._left -= 1
