"""Limit: how many connections a store may have over all its event loops.

Every loop has a pool of its own. A loop that has none at all waits for another loop to give one up;
a loop that has some waits for those. Used from several threads, so everything happens under a lock
and a waiter is woken through its own loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable


class _Waiter:
    """A loop that waits until it may open a connection."""

    __slots__ = ("future", "granted", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = self.loop.create_future()
        self.granted = False  # set under the lock: from then on the waiter has it

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class ConnectionLimit:
    """So many connections at a time, whichever loop has them."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.waiting: deque[_Waiter] = deque()
        self._left = total
        self._mutex = threading.Lock()

    def try_take(self) -> bool:
        """Take one if one is left and nobody waits for it."""
        with self._mutex:
            if self._left <= 0 or self.waiting:
                return False
            self._left -= 1
            return True

    async def take(self, timeout: float | None, ask_others: Callable[[], None]) -> None:
        """Wait for one; `ask_others` makes other loops give up what they do not use.

        Raises TimeoutError after so many seconds.
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
        except BaseException:
            with self._mutex:
                if not waiter.granted:
                    self.waiting.remove(waiter)
            if waiter.granted:
                self.give()
            raise

    def give(self, count: int = 1) -> None:
        """Say that so many connections are gone."""
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
