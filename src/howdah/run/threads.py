"""Threads: plain functions beside the event loop.

A thread cannot be stopped from outside. One whose job timed out or was lost is abandoned: it
keeps its thread, and its slot, until it ends by itself, and what it returns is refused. The
threads are daemons, so an abandoned one never keeps the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Work = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class Threads:
    """A pool that grows to its size and gives each call a thread of its own."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._threads = 0
        self._idle = 0
        self._lock = threading.Lock()
        self._loop = asyncio.get_running_loop()

    def submit(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Call the function in a thread; the future carries what it returns or raises."""
        future = self._loop.create_future()
        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._size:
                self._threads += 1
                threading.Thread(
                    target=self._serve, name=f"howdah-thread-{self._threads}", daemon=True
                ).start()
        self._work.put((function, future))
        return future

    def close(self) -> None:
        """Let idle threads end; a busy one ends after its call."""
        for _ in range(self._threads):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            function, future = work
            try:
                value, error = function(), None
            except BaseException as raised:  # the event loop judges it, as it does a coroutine's
                value, error = None, raised
            with self._lock:
                self._idle += 1
            try:
                self._loop.call_soon_threadsafe(_resolve, future, value, error)
            except RuntimeError:  # the loop is closed: nobody waits for this any more
                return
            del work, function, future, value, error


def _resolve(future: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(value)
    elif isinstance(error, StopIteration):  # a future refuses to carry it
        future.set_exception(RuntimeError(f"StopIteration: {error}"))
    else:
        future.set_exception(error)
