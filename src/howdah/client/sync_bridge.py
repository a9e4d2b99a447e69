"""SyncBridge: what a sync queue and everything it hands out share.

A queue of its own for the portal's thread, with the functions of the queue it stands for: an
event loop cannot use the connections of another. A forked child gets a new one. Work
through a connection of the caller's own never goes to the portal: it is done in the caller's
thread, where that connection lives.
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
    """One queue's stand-in on the portal's thread."""

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

    def renew(self) -> None:
        portal.abandon(self.queue)
        self.queue = self._original.for_other_loop()

    def run(self, work: Coroutine[Any, Any, T], conn: object) -> T:
        """Run a verb on the portal's thread; through a given connection, in the caller's own."""
        if conn is None:
            return portal.run(work)
        try:
            caller_connection.refuse_async(conn)
        except BadInput:
            work.close()
            raise
        return portal.run_inline(work)

    def feed(
        self,
        items: Iterable[T],
        send: Callable[[Iterable[T] | AsyncGenerator[T, None]], Coroutine[Any, Any, R]],
        conn: object,
    ) -> R:
        """Run a verb that reads a stream; the items are always made in the caller's thread."""
        if not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"a sync queue reads plain iterables, not {type(items).__name__}")
        if conn is None:
            return portal.feed(items, send)
        return self.run(send(items), conn)
