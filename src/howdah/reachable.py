"""Reachable: tells all loops that wait for a database that one of them has reached it again.

Each part of a worker retries by itself, after pauses that grow to seconds. After a restart of the
server, the first part that succeeds ends the pauses of all others. Only a success after a failure
is announced. So a part that fails for a reason of its own keeps its pauses while others succeed.

A store has one, for all its event loops and threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


class Reachable:
    """Who waits for one database, and how often it was reached again."""

    def __init__(self) -> None:
        self.announced: int = 0
        self._waiting: dict[object, tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = {}
        self._lock = threading.Lock()

    def announce(self) -> None:
        """End every wait. Safe in any thread."""
        with self._lock:
            self.announced += 1
            waiting = list(self._waiting.values())
        for loop, end in waiting:
            with suppress(RuntimeError):  # that loop is closed
                loop.call_soon_threadsafe(end)

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Generator[None]:
        """Call `end` in the running event loop at each announcement within the block."""
        key = object()
        with self._lock:
            self._waiting[key] = (asyncio.get_running_loop(), end)
        try:
            yield
        finally:
            with self._lock:
                del self._waiting[key]

    async def wait(self, seconds: float) -> None:
        """Wait so long, or until the next announcement."""
        announced = asyncio.Event()
        with self.ending(announced.set), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await announced.wait()
