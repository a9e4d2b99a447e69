"""Wakeup: an idle worker sleeps until a job is there, and producers know that it sleeps.

An idle worker holds a shared advisory lock on its listening connection. Producers send no NOTIFY
while nobody holds it (sql/25_notify/wake.sql). To fall asleep, a worker takes the lock, claims
once more, waits for RECHECK seconds, claims again, and then sleeps until a signal or the poll.

A signal names the types that have jobs. The worker claims only these, which is quicker, and
claims all its types RECHECK seconds later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from howdah.store.listen import DUE, NEWS, WAKE, Listener, named_ids, named_types
from howdah.store.store import Store

RECHECK = 0.05  # a producer may check before we take the lock, and commit after our claim
BUSY = 4  # full claims in a row after which producers need not send NOTIFY


class Wakeup:
    """What a worker's claim loop waits on."""

    def __init__(
        self,
        store: Store,
        *,
        poll: float,
        knows: Callable[[str], bool],
        news: Callable[[list[UUID]], None],
        due: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._poll = poll
        self._knows = knows
        self._news = news
        self._due = due  # is told when scheduled jobs are due; "": not known
        self._repeat_due = False  # call it again after the first recheck
        self._signalled = False
        self._awake = asyncio.Event()  # a signal came, or the time is over
        self._named: set[str] | None = set()  # the types that signals named; None: any
        self._asleep = False  # whether we hold the lock
        self._recheck_from: float | None = None  # since when a signal may have been missed
        self._full_claims = 0  # in a row
        self._listener = Listener(store, [WAKE, NEWS, DUE], self._received, self._gap)

    @property
    def is_listening(self) -> bool:
        return self._listener.is_listening

    async def start(self) -> None:
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    def wake(self) -> None:
        """End the sleep; the worker claims all its types."""
        self._named = None
        self._signal()

    async def claimed_in_full(self) -> None:
        """Count a claim that returned as many jobs as it asked for: the worker is busy."""
        self._full_claims += 1
        if self._asleep and self._full_claims >= BUSY:
            self._asleep = False
            await self._listener.run(_unlock)

    async def wait(self, at_most: float | None = None) -> list[str]:
        """Sleep until the next claim; call it after a claim that returned fewer jobs than asked.

        Returns the types to claim; empty: all of them.
        """
        poll = self._poll if at_most is None else min(self._poll, at_most)
        self._full_claims = 0
        if not self._asleep and await self._listener.run(_lock):
            self._asleep, self._recheck_from, self._named = True, time.monotonic(), set()
            self._repeat_due = True
            self._due("")  # without the lock we got no such messages
            return []
        if not self.is_listening:
            await self.sleep(min(self._poll, 0.25))
            return []
        since = self._recheck_from
        left = 0.0 if since is None else max(0.0, since + RECHECK - time.monotonic())
        signalled = await self.sleep(poll if since is None else left)
        named, self._named = self._named, set()
        if not signalled:
            self._recheck_from = None
            if self._repeat_due:
                self._repeat_due = False
                self._due("")
            return []
        now = time.monotonic()
        if since is None or now >= since + RECHECK:
            # the job may be locked by another transaction for a moment: claim again soon
            self._recheck_from = now
        return sorted(named) if named and (since is None or now < since + RECHECK) else []

    async def sleep(self, seconds: float) -> bool:
        """Sleep so long, or until a signal; returns whether one came."""
        timer = asyncio.get_running_loop().call_later(seconds, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            timer.cancel()
        self._awake.clear()
        signalled, self._signalled = self._signalled, False
        return signalled

    async def sleep_until_reachable(self, seconds: float) -> None:
        """Sleep so long, or until a signal, or until any part reaches the database again."""
        with self._store.reachable.ending(self.wake):
            await self.sleep(seconds)

    def _signal(self) -> None:
        self._signalled = True
        self._awake.set()

    def _received(self, channel: str, message: str) -> None:
        if channel == NEWS:
            self._news(named_ids(message))
        elif channel == DUE:
            self._due(message)
        elif not (types := named_types(message)):
            self.wake()
        elif known := [name for name in types if self._knows(name)]:
            if self._named is not None:
                self._named.update(known)
            self._signal()

    def _gap(self) -> None:
        """Note that the listening connection is new or lost: the lock went with it."""
        self._asleep = False
        self.wake()


async def _lock(connection: object) -> None:
    await connection.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")  # type: ignore[attr-defined]


async def _unlock(connection: object) -> None:
    await connection.execute("select pg_advisory_unlock_shared(howdah.lock_space(), 1)")  # type: ignore[attr-defined]
