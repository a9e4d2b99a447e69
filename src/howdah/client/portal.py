"""Portal: the private event-loop thread on which sync code runs async calls.

There is one daemon thread per process, started by the first call. A forked child inherits no
threads, so its first call starts a new one. The child keeps the objects of the parent's loop and
never closes them, because both processes share the sockets. A call from a thread with another
running loop works, and blocks that loop. A call from the portal's own thread would wait for
itself and is refused.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable
from concurrent.futures import Future
from contextlib import suppress
from itertools import islice
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from howdah.client.loop import new_event_loop
from howdah.errors import HowdahError

T = TypeVar("T")
R = TypeVar("R")

CHUNK = 500  # items of a stream that are passed to the loop at a time
CLEAN_UP_TIMEOUT = 5.0  # seconds for tasks to clean up when the thread is ended
SIGNAL_CHECK = 0.5  # seconds; a signal just before a wait does not interrupt it, so waits are short
_END: Any = object()


class LoopResource(Protocol):
    """An object that uses the portal's loop."""

    async def close(self) -> None:
        """Close it; called on the loop before the loop ends."""
        ...

    def reset_after_fork(self) -> None:
        """Start anew in a forked child, without touching what was inherited."""
        ...


class _Portal:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop = new_event_loop()
        self.thread = threading.Thread(target=self._work, name="howdah-portal", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        while True:
            try:
                self.loop.run_forever()
                break
            except (SystemExit, KeyboardInterrupt):  # raised by one task; its caller gets it
                continue
        with suppress(TimeoutError):
            self.loop.run_until_complete(self._clean_up())
        self.loop.close()

    async def _clean_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CLEAN_UP_TIMEOUT)
        closing = [resource.close() for resource in list(_resources)]
        await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), CLEAN_UP_TIMEOUT)
        await self.loop.shutdown_asyncgens()

    @property
    def is_current_thread(self) -> bool:
        return threading.current_thread() is self.thread

    def start(self, work: Coroutine[Any, Any, T]) -> _LoopCall[T]:
        call: _LoopCall[T] = _LoopCall(self.loop)
        self.loop.call_soon_threadsafe(call.begin, work)
        return call


class _LoopCall(Future[T]):
    """A coroutine on the loop; another thread waits for its result."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self._task: asyncio.Task[T] | None = None
        self._done = threading.Event()
        self.add_done_callback(lambda _: self._done.set())

    def begin(self, work: Coroutine[Any, Any, T]) -> None:
        self._task = self.loop.create_task(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.set_exception(
                HowdahError(
                    "the sync queue's thread was ended during this call: call it before the "
                    "program exits"
                )
            )
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())

    def wait(self) -> T:
        try:
            self._wait_until_done()
        except BaseException:  # raised by a signal handler
            self.cancel_and_wait()
            raise
        return self.result()

    def _wait_until_done(self) -> None:
        while not self._done.wait(SIGNAL_CHECK):
            pass

    def cancel_and_wait(self) -> None:
        """Cancel the coroutine, and wait until it has cleaned up."""
        self.loop.call_soon_threadsafe(self._cancel)
        self._wait_until_done()

    def set_from_thread(self, future: asyncio.Future[R], value: R | Exception) -> None:
        """Set a future of the loop that the coroutine waits for."""

        def set_future() -> None:
            if future.done():  # the coroutine was cancelled
                return
            if isinstance(value, Exception):
                future.set_exception(value)
            else:
                future.set_result(value)

        with suppress(RuntimeError):  # the loop is closed, so the call has ended
            self.loop.call_soon_threadsafe(set_future)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


_portal: _Portal | None = None
_mutex = threading.Lock()
_resources: weakref.WeakSet[LoopResource] = weakref.WeakSet()
_abandoned: list[object] = []


def _open() -> _Portal:
    """Return the portal; the caller holds the mutex."""
    global _portal
    if _portal is None:
        _portal = _Portal()
    return _portal


def _start(work: Coroutine[Any, Any, T]) -> _LoopCall[T]:
    with _mutex:
        portal = _open()
        if not portal.is_current_thread:
            return portal.start(work)
    work.close()
    raise HowdahError(
        "this call of the sync queue comes from its own event-loop thread and would wait for "
        "itself: use the async Queue in async functions"
    )


def register(resource: LoopResource) -> None:
    """Close this resource when the loop ends, and reset it after a fork."""
    _resources.add(resource)


def abandon(inherited: object) -> None:
    """Keep an inherited object alive: to free it would close sockets of the parent."""
    _abandoned.append(inherited)


def _after_fork() -> None:
    global _portal, _mutex
    _mutex = threading.Lock()  # another thread of the parent may have held it
    abandon(_portal)
    _portal = None
    for resource in list(_resources):
        resource.reset_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def close() -> None:
    """Close every queue and end the thread, if it runs; the next call starts another."""
    global _portal
    with _mutex:
        portal, _portal = _portal, None
        if portal is not None:
            portal.loop.call_soon_threadsafe(portal.loop.stop)
    if portal is not None and not portal.is_current_thread:
        portal.thread.join(CLEAN_UP_TIMEOUT * 3)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the portal's thread, and return its result.

    An interrupt cancels the coroutine, waits until it has cleaned up, and is raised.
    """
    return _start(work).wait()


def call_soon(function: Callable[[], object]) -> None:
    """Call a function on the portal's thread, without waiting for it."""
    with _mutex:
        _open().loop.call_soon_threadsafe(function)


def each(stream: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """Yield the items of an async generator as they come."""
    try:
        while (item := run(_next(stream))) is not _END:
            yield item
    finally:
        _close_stream(stream)


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await anext(stream, _END)


async def _close(stream: AsyncGenerator[Any, None]) -> None:
    await stream.aclose()


def _close_stream(stream: AsyncGenerator[Any, None]) -> None:
    with _mutex:
        portal = _portal
    if portal is not None and portal.is_current_thread:  # called by the garbage collector
        portal.loop.create_task(_close(stream))
    elif portal is not None:
        run(_close(stream))


class _SourceFailed(Exception):
    """The caller's iterable raised an error; this ends the coroutine that reads it."""


def feed(
    items: Iterable[T], send: Callable[[AsyncGenerator[T, None]], Coroutine[Any, Any, R]]
) -> R:
    """Run a coroutine that reads a stream; the items are made in the caller's own thread.

    They may come from a database cursor or an ORM that is bound to this thread.
    """
    source = iter(items)
    requests: SimpleQueue[asyncio.Future[list[T]] | None] = SimpleQueue()  # None: the call ended

    async def stream() -> AsyncGenerator[T, None]:
        while True:
            request: asyncio.Future[list[T]] = asyncio.get_running_loop().create_future()
            requests.put(request)
            chunk = await request
            for item in chunk:
                yield item
            if len(chunk) < CHUNK:
                return

    call = _start(send(stream()))
    call.add_done_callback(lambda _: requests.put(None))
    try:
        while (request := _get(requests)) is not None:
            try:
                chunk = list(islice(source, CHUNK))
            except Exception:
                call.set_from_thread(request, _SourceFailed())
                call.exception()
                raise
            call.set_from_thread(request, chunk)
    except BaseException:
        if not call.done():  # an interrupt
            call.cancel_and_wait()
        raise
    return call.wait()


def _get(queue: SimpleQueue[T]) -> T:
    while True:
        with suppress(Empty):
            return queue.get(timeout=SIGNAL_CHECK)
