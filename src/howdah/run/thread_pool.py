"""Thread pool: run plain functions in threads beside the event loop.

Each call has its own thread while it runs. A thread that takes a call while more calls wait wakes
one other thread, which does the same. So short calls use few threads, and blocking calls soon use
all of them. Calls that ended are delivered to the event loop together.

A thread cannot be stopped. A call whose job timed out or was lost keeps its thread and its slot
until it ends, and its result is ignored. The threads are daemons, so they never keep the process
from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from howdah.text.reasons import describe


class ThreadCall:
    """A function that runs in a thread; `future` gets what it returns or raises."""

    __slots__ = ("ended", "error", "function", "future", "on_end", "value")

    def __init__(self, function: Callable[[], Any], future: asyncio.Future[Any]) -> None:
        self.function: Callable[[], Any] = function
        self.future: asyncio.Future[Any] = future
        self.value: Any = None
        self.error: BaseException | None = None
        self.ended: bool = False  # set in the event loop
        self.on_end: Callable[[], None] | None = None  # called in the event loop when it has ended

    def run(self) -> None:
        try:
            self.value = self.function()
        except BaseException as error:  # the caller handles it in the event loop
            self.error = error

    def deliver(self) -> None:
        """Set the future, unless it was cancelled. Called in the event loop."""
        self.ended = True
        if not self.future.done():
            if self.error is None:
                self.future.set_result(self.value)
            elif issubclass(type(self.error), StopIteration):  # a future does not accept it
                self.future.set_exception(RuntimeError(describe(self.error)))
            else:
                self.future.set_exception(self.error)
        if self.on_end is not None:
            self.on_end()


class ThreadPool:
    """A pool of up to `size` threads."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[ThreadCall] = deque()
        self._ended: deque[ThreadCall] = deque()
        self._wakeups: SimpleQueue[None] = SimpleQueue()  # one item per idle thread to wake
        self._lock = threading.Lock()  # guards the fields below
        self._threads = 0
        self._idle = 0  # idle threads that nobody has woken
        self._waking = False  # whether a thread was woken or started, and has not yet begun
        self._delivering = False  # whether `_deliver_all` is scheduled in the loop
        self._closed = False
        self._loop = asyncio.get_running_loop()

    def submit(self, function: Callable[[], Any]) -> ThreadCall:
        """Call the function in a thread."""
        call = ThreadCall(function, self._loop.create_future())
        self._waiting.append(call)
        try:
            self._wake_thread()
        except RuntimeError:  # the system allows no thread, not even the first
            self._waiting.remove(call)
            raise
        return call

    def close(self) -> None:
        """End the idle threads; a busy one ends after its call."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, 0
        for _ in range(idle):
            self._wakeups.put(None)

    def _wake_thread(self) -> None:
        """Wake or start a thread for the first waiting call, unless one is about to begin."""
        with self._lock:
            if self._waking or not self._waiting:
                return
            if self._idle:
                self._idle -= 1
                self._waking = True
                self._wakeups.put(None)
                return
            if self._threads == self._size:
                return  # all are busy, and take the next call when they are not
            self._threads += 1
            self._waking = True
            name = f"howdah-thread-{self._threads}"
        try:
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError:
            with self._lock:
                self._threads -= 1
                self._waking = False
                if not self._threads:
                    raise

    def _serve(self) -> None:
        """Run calls in a thread until the pool is closed."""
        while True:
            with self._lock:
                self._waking = False
            idle = False
            while not idle and (call := self._next()) is not None:
                call.run()
                idle = self._add_ended(call)
                if not self._schedule_delivery():
                    return
                del call
            if not idle:
                with self._lock:
                    if self._waiting:
                        continue  # a call was added meanwhile
                    if self._closed:
                        return
                    self._idle += 1
            self._wakeups.get()

    def _next(self) -> ThreadCall | None:
        """Take the next call, and wake a thread for the one after it."""
        try:
            call = self._waiting.popleft()
        except IndexError:
            return None
        if self._waiting and not self._waking:
            self._wake_thread()
        return call

    def _add_ended(self, call: ThreadCall) -> bool:
        """Add an ended call; returns whether its thread is counted as idle now.

        It is counted before the end is delivered: otherwise the next call would start a second
        thread.
        """
        with self._lock:
            self._ended.append(call)
            if idle := not self._waiting and not self._closed:
                self._idle += 1
            return idle

    def _schedule_delivery(self) -> bool:
        """Schedule the delivery of ended calls in the loop; False if the loop is closed."""
        with self._lock:
            if self._delivering or not self._ended:
                return True
            self._delivering = True
        try:
            self._loop.call_soon_threadsafe(self._deliver_all)
        except RuntimeError:  # the loop is closed
            return False
        return True

    def _deliver_all(self) -> None:
        with self._lock:
            ended, self._ended = self._ended, deque()
            self._delivering = False
        for call in ended:
            call.deliver()
