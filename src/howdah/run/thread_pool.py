"""Threads: plain functions beside the event loop.

Every call has a thread to itself while it runs. A thread that takes a call while more are waiting
rouses one other, which does the same; so short calls go by in few threads, and calls that block are
soon in as many as there may be. What has ended is told to the event loop in one go.

A thread cannot be stopped from outside. One whose job timed out or was lost is abandoned: it
keeps its thread, and its slot, until it ends by itself, and what it returns is refused. The
threads are daemons, so an abandoned one never keeps the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from howdah.text.reasons import describe


class Call:
    """A function on its way through a thread; `future` carries what it returns or raises."""

    __slots__ = ("ended", "error", "function", "future", "then", "value")

    def __init__(self, function: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self.function: Callable[[], Any] = function
        self.future: asyncio.Future[Any] = future
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended: bool = False  # whether its thread is through with it, as the loop knows
        self.then: Callable[[], None] | None = None  # called in the loop when it has ended

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:  # the event loop judges it, as it does a coroutine's
            self.error = error

    def tell(self) -> None:
        """Tell whoever waits for it, if somebody still does. Called in the event loop."""
        self.ended = True
        if not self.future.done():
            if self.error is None:
                self.future.set_result(self.value)
            elif issubclass(type(self.error), StopIteration):  # a future refuses to carry it
                self.future.set_exception(RuntimeError(describe(self.error)))
            else:
                self.future.set_exception(self.error)
        if self.then is not None:
            self.then()


class ThreadPool:
    """A pool that grows to its size, and serves as many calls at once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[Call] = deque()
        self._ended: deque[Call] = deque()
        self._bell: SimpleQueue[None] = SimpleQueue()  # rung once for each thread to be roused
        self._lock = threading.Lock()  # of what follows
        self._threads = 0
        self._idle = 0  # threads that nobody has rung for
        self._rousing = False  # whether one was rung for, or started, and is not there yet
        self._telling = False  # whether the loop is about to look at what has ended
        self._closed = False
        self._loop = asyncio.get_running_loop()

    def submit(self, function: Callable[[], Any]) -> Call:
        """Call the function in a thread."""
        call = Call(function, self._loop.create_future())
        self._waiting.append(call)
        try:
            self._rouse()
        except RuntimeError:  # the system gives us no thread, not even the first
            self._waiting.remove(call)
            raise
        return call

    def close(self) -> None:
        """Let idle threads end; a busy one ends after its call."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._bell.put(None)

    def _rouse(self) -> None:
        """Get a thread for the first call that waits, unless one is on its way."""
        with self._lock:
            if self._rousing or not self._waiting:
                return
            if self._idle:
                self._idle -= 1
                self._rousing = True
                self._bell.put(None)
                return
            if self._threads == self._size:
                return  # all are busy, and look for themselves when they are not
            self._threads += 1
            self._rousing = True
            name = f"howdah-thread-{self._threads}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                self._rousing = False
                if not self._threads:
                    raise

    def _serve(self) -> None:
        """The life of a thread."""
        while True:
            with self._lock:
                self._rousing = False
            rests = False
            while not rests and (call := self._next()) is not None:
                call.run()
                rests = self._ends(call)
                if not self._tell():
                    return
                del call
            if not rests:
                with self._lock:
                    if self._waiting:
                        continue  # it came in between
                    if self._closed:
                        return
                    self._idle += 1
            self._bell.get()

    def _next(self) -> Call | None:
        """Take the next call, and let somebody else take the one behind it."""
        try:
            call = self._waiting.popleft()
        except IndexError:
            return None
        if self._waiting and not self._rousing:
            self._rouse()
        return call

    def _ends(self, call: Call) -> bool:
        """Put an ended call aside; True if its thread rests now, before anybody hears of the end.

        Else whoever hears of it and calls again would be given a second thread.
        """
        with self._lock:
            self._ended.append(call)
            if rests := not self._waiting and not self._closed:
                self._idle += 1
            return rests

    def _tell(self) -> bool:
        """Tell the loop that calls have ended; False when nobody is there any more."""
        with self._lock:
            if self._telling or not self._ended:
                return True
            self._telling = True
        try:
            self._loop.call_soon_threadsafe(self._tell_all)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def _tell_all(self) -> None:
        with self._lock:
            ended, self._ended = self._ended, deque()
            self._telling = False
        for call in ended:
            call.tell()
