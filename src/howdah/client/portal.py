"""Portal: the private event-loop thread on which sync code runs async verbs.

One daemon thread per process, started by the first call. A forked child inherits no threads,
so its first call starts a thread of its own; what the parent's loop held is kept there and left
alone, because a fork shares its sockets. A call from a thread with another running loop works,
and blocks that loop while it waits. A call from the portal's own thread could never be
answered and is refused.
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

CHUNK = 500  # items of a stream that cross to the loop at a time
PATIENCE = 5.0  # seconds for tasks to clean up when the thread is ended
LOOK_UP = 0.5  # seconds; a signal that comes just before a wait begins does not end that wait
_END: Any = object()


class LoopResource(Protocol):
    """Who keeps something on the portal's loop."""

    async def close(self) -> None:
        """Let go of it; called on the loop before it ends."""
        ...

    def renew(self) -> None:
        """Begin anew in a forked child, and leave what was inherited alone."""
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
            except (SystemExit, KeyboardInterrupt):  # of one task, which its caller is told
                continue
        with suppress(TimeoutError):
            self.loop.run_until_complete(self._clean_up())
        self.loop.close()

    async def _clean_up(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=PATIENCE)
        closing = [resource.close() for resource in list(_resources)]
        await asyncio.wait_for(asyncio.gather(*closing, return_exceptions=True), PATIENCE)
        await self.loop.shutdown_asyncgens()

    @property
    def is_here(self) -> bool:
        return threading.current_thread() is self.thread

    def start(self, work: Coroutine[Any, Any, T]) -> _Call[T]:
        call: _Call[T] = _Call(self.loop)
        self.loop.call_soon_threadsafe(call.begin, work)
        return call


class _Call(Future[T]):
    """A coroutine on the loop, and whoever waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = loop
        self._task: asyncio.Task[T] | None = None
        self._over = threading.Event()
        self.add_done_callback(lambda _: self._over.set())

    def begin(self, work: Coroutine[Any, Any, T]) -> None:
        self._task = self.loop.create_task(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.set_exception(HowdahError("the sync queue's thread was ended during this call"))
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())

    def wait(self) -> T:
        try:
            self._wait_until_done()
        except BaseException:  # a signal handler's
            self.give_up()
            raise
        return self.result()

    def _wait_until_done(self) -> None:
        while not self._over.wait(LOOK_UP):
            pass

    def give_up(self) -> None:
        """Cancel the coroutine, and let it clean up."""
        self.loop.call_soon_threadsafe(self._cancel)
        self._wait_until_done()

    def answer(self, want: asyncio.Future[R], answer: R | Exception) -> None:
        """Give the coroutine something it waits for."""

        def give() -> None:
            if want.done():  # it has given up
                return
            if isinstance(answer, Exception):
                want.set_exception(answer)
            else:
                want.set_result(answer)

        with suppress(RuntimeError):  # the loop is closed, and so is the call
            self.loop.call_soon_threadsafe(give)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


_portal: _Portal | None = None
_mutex = threading.Lock()
_resources: weakref.WeakSet[LoopResource] = weakref.WeakSet()
_left_behind: list[object] = []


def _open() -> _Portal:
    """Return the portal; the caller holds the mutex."""
    global _portal
    if _portal is None:
        _portal = _Portal()
    return _portal


def _start(work: Coroutine[Any, Any, T]) -> _Call[T]:
    with _mutex:
        portal = _open()
        if not portal.is_here:
            return portal.start(work)
    work.close()
    raise HowdahError(
        "a call of the sync queue, from the thread that would have to answer it: "
        "use the async Queue in async functions"
    )


def register(resource: LoopResource) -> None:
    """Tell a resource when the loop ends and when the process was forked."""
    _resources.add(resource)


def abandon(inherited: object) -> None:
    """Keep what a forked child inherited and must not close: the sockets are the parent's too."""
    _left_behind.append(inherited)


def _after_fork() -> None:
    global _portal, _mutex
    _mutex = threading.Lock()  # another thread of the parent may have held it
    abandon(_portal)
    _portal = None
    for resource in list(_resources):
        resource.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def close() -> None:
    """Let every queue go and end the thread, if it runs; the next call starts another."""
    global _portal
    with _mutex:
        portal, _portal = _portal, None
        if portal is not None:
            portal.loop.call_soon_threadsafe(portal.loop.stop)
    if portal is not None and not portal.is_here:
        portal.thread.join(PATIENCE * 3)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the portal's thread, and wait for what it returns.

    An interrupt of the wait cancels the coroutine, lets it clean up, and is raised.
    """
    return _start(work).wait()


def run_inline(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never waits, in the caller's own thread."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise AssertionError("this coroutine waits, so it needs a loop")


def call_soon(function: Callable[[], object]) -> None:
    """Have a function called on the portal's thread, and do not wait for it."""
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
    if portal is not None and portal.is_here:  # called by the garbage collector
        portal.loop.create_task(_close(stream))
    elif portal is not None:
        run(_close(stream))


class _SourceFailed(Exception):
    """Where a stream's items come from is broken."""


def feed(
    items: Iterable[T], send: Callable[[AsyncGenerator[T, None]], Coroutine[Any, Any, R]]
) -> R:
    """Run a coroutine that reads a stream, whose items are made in the caller's own thread.

    They may come from a database cursor or an ORM that is bound to this thread.
    """
    source = iter(items)
    wanted: SimpleQueue[asyncio.Future[list[T]] | None] = SimpleQueue()

    async def stream() -> AsyncGenerator[T, None]:
        while True:
            want: asyncio.Future[list[T]] = asyncio.get_running_loop().create_future()
            wanted.put(want)
            chunk = await want
            for item in chunk:
                yield item
            if len(chunk) < CHUNK:
                return

    call = _start(send(stream()))
    call.add_done_callback(lambda _: wanted.put(None))
    try:
        while (want := _get(wanted)) is not None:
            try:
                chunk = list(islice(source, CHUNK))
            except Exception:
                call.answer(want, _SourceFailed())
                call.exception()
                raise
            call.answer(want, chunk)
    except BaseException:
        if not call.done():  # an interrupt
            call.give_up()
        raise
    return call.wait()


def _get(queue: SimpleQueue[T]) -> T:
    while True:
        with suppress(Empty):
            return queue.get(timeout=LOOK_UP)
