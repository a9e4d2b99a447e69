"""Sync bridge: the async queue behind a sync queue, its job types and its handles.

The bridge copies the queue for the portal's thread, because an event loop cannot use the
connections of another one. A forked child gets a new copy. A call with the caller's own connection
never goes to the portal: it runs in the caller's thread, where that connection is used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from typing import Any, TypeVar
from uuid import UUID

from howdah.client import portal
from howdah.client.follow import Follower
from howdah.client.handle import Handle
from howdah.client.queue import Queue
from howdah.errors import BadInput
from howdah.store import Store, caller_connection

T = TypeVar("T")
R = TypeVar("R")


class SyncBridge:
    """The copy of one queue for the portal's thread."""

    def __init__(self, queue: Queue) -> None:
        self._original = queue
        self.queue: Queue = queue.for_other_loop()
        portal.register(self)

    @property
    def store(self) -> Store:
        return self.queue.store

    @property
    def follower(self) -> Follower:
        return self.queue.follower

    def handle(self, id: UUID) -> Handle[Any]:
        return self.queue.handle(id)

    async def close(self) -> None:
        await self.queue.close()

    def reset_after_fork(self) -> None:
        portal.abandon(self.queue)
        self.queue = self._original.for_other_loop()

    def run(self, work: Coroutine[Any, Any, T], conn: object) -> T:
        """Run a call on the portal's thread; with the caller's connection, in its own thread."""
        if conn is None:
            return portal.run(work)
        try:
            caller_connection.refuse_async(conn)
        except BadInput:
            work.close()
            raise
        return caller_connection.run_inline(work)

    def feed(
        self,
        items: Iterable[T],
        send: Callable[[Iterable[T] | AsyncGenerator[T, None]], Coroutine[Any, Any, R]],
        conn: object,
    ) -> R:
        """Run a call that reads a stream; the items are always made in the caller's thread."""
        if not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"a sync queue reads plain iterables, not {type(items).__name__}")
        if conn is None:
            return portal.feed(items, send)
        return self.run(send(items), conn)
