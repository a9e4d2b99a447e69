"""Doorbell: sleep until a job is there, and let producers know that somebody sleeps.

A sleeping worker holds a shared advisory lock on its listening connection; producers that
find nobody holding it spare the NOTIFY (sql/25_notify/wake.sql). Falling asleep is: take the
lock, look once more, doze for a glance, look again, then sleep until the bell or the poll.

The bell names the types that have jobs. Whoever hears it looks at these alone, which is
quicker, and after a glance once more at all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from uuid import UUID

from howdah.store.listen import DUE, NEWS, WAKE, Listener, named_ids, named_types
from howdah.store.store import Store

RECHECK = 0.05  # a producer may have looked before we took the lock and commit after we looked
BUSY = 4  # full claims in a row after which nobody needs to ring


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
        self._poll = poll
        self._knows = knows
        self._news = news
        self._due = due  # hears of jobs that wait; "": there may be some
        self._ask_again = False  # the same once more after the first glance
        self._rung = False
        self._awake = asyncio.Event()  # it rang, or the time is over
        self._named: set[str] | None = set()  # for which types it rang; None: for any
        self._asleep = False
        self._unsure_since: float | None = None  # since when something may have gone unheard
        self._full = 0
        self._listener = Listener(store, [WAKE, NEWS, DUE], self._heard, self._gap)

    @property
    def hears(self) -> bool:
        return self._listener.hears

    async def start(self) -> None:
        await self._listener.start()

    async def stop(self) -> None:
        await self._listener.stop()

    def ring(self) -> None:
        """Wake the sleeper, to look at everything."""
        self._named = None
        self._strike()

    async def found_enough(self) -> None:
        """A claim brought all that was asked for: the worker is busy, nobody need ring."""
        self._full += 1
        if self._asleep and self._full >= BUSY:
            self._asleep = False
            await self._listener.run(_unlock)

    async def wait(self, at_most: float | None = None) -> list[str]:
        """A claim brought less than was asked for: sleep until it is worth looking again.

        Returns the types to look at; none: at all of them.
        """
        poll = self._poll if at_most is None else min(self._poll, at_most)
        self._full = 0
        if not self._asleep and await self._listener.run(_lock):
            self._asleep, self._unsure_since, self._named = True, time.monotonic(), set()
            self._ask_again = True
            self._due("")  # nobody told us while we were awake
            return []
        if not self.hears:
            await self.sleep(min(self._poll, 0.25))
            return []
        unsure = self._unsure_since
        left = 0.0 if unsure is None else max(0.0, unsure + RECHECK - time.monotonic())
        rang = await self.sleep(poll if unsure is None else left)
        named, self._named = self._named, set()
        if not rang:
            self._unsure_since = None
            if self._ask_again:
                self._ask_again = False
                self._due("")
            return []
        now = time.monotonic()
        if unsure is None or now >= unsure + RECHECK:
            # rung for a job that somebody has locked for a moment, a look finds nothing: glance
            self._unsure_since = now
        return sorted(named) if named and (unsure is None or now < unsure + RECHECK) else []

    async def sleep(self, seconds: float) -> bool:
        """Sleep so long, or until the bell; returns whether it rang."""
        alarm = asyncio.get_running_loop().call_later(seconds, self._awake.set)
        try:
            await self._awake.wait()
        finally:
            alarm.cancel()
        self._awake.clear()
        rang, self._rung = self._rung, False
        return rang

    def _strike(self) -> None:
        self._rung = True
        self._awake.set()

    def _heard(self, channel: str, message: str) -> None:
        if channel == NEWS:
            self._news(named_ids(message))
        elif channel == DUE:
            self._due(message)
        elif not (types := named_types(message)):
            self.ring()
        elif known := [name for name in types if self._knows(name)]:
            if self._named is not None:
                self._named.update(known)
            self._strike()

    def _gap(self) -> None:
        """The listening connection is new or lost: the lock went with it."""
        self._asleep = False
        self.ring()


async def _lock(connection: object) -> None:
    await connection.execute("select pg_advisory_lock_shared(howdah.lock_space(), 1)")  # type: ignore[attr-defined]


async def _unlock(connection: object) -> None:
    await connection.execute("select pg_advisory_unlock_shared(howdah.lock_space(), 1)")  # type: ignore[attr-defined]
