"""Throttle: wrong answers make the next ones wait, and nobody is locked out.

A try waits before it is checked: the longer, the more wrong answers there were in the last minute,
from the same client or from all together, and ten seconds at most. The right answer always gets in
after that. A try counts as wrong from its beginning until it has proved right, so tries side by
side are not cheaper than one by one.

How many wait at once is bounded, which bounds the guesses to 40 a second from everywhere. One more
than that is refused unread, first from a client that has another one waiting.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException

FORGIVEN = 60.0  # seconds after which a wrong answer no longer counts
LONGEST = 10.0  # seconds that a try waits
REMEMBERED = 10_000  # clients
SHARED = 200  # tries that wait at once, after which a client may have only one of them
FULL = 400  # tries that wait at once
LATER = "Too many tries are waiting to be checked. Try again in some seconds."


class Try:
    """One answer that is about to be checked; it is wrong until somebody says otherwise."""

    right: bool = False


class Throttle:
    """Remembers wrong answers of the last minute, and lets tries wait."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._wrong: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=REMEMBERED)
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def attempt(self, client: str) -> AsyncGenerator[Try]:
        """Wait for the turn of a try; set its `right` when it proves right."""
        waiting = self._waiting.total()
        if waiting >= FULL or (waiting >= SHARED and self._waiting[client]):
            raise HTTPException(429, LATER, {"Retry-After": str(int(LONGEST))})
        one, wait, at = Try(), self.wait(client), self.count(client)
        self._waiting[client] += 1
        try:
            if wait:
                await self._sleep(wait)
        finally:
            self._waiting[client] -= 1
            self._waiting += Counter()  # without those that have none
        yield one
        if one.right:
            self._forgive(client, at)

    def wait(self, client: str) -> float:
        """Say how many seconds a try of this client waits now."""
        own, all_of_them = len(self._recent(client)), len(self._in_all())
        by_own = 0.1 * 2**own if own else 0.0
        by_all = 0.1 * 2 ** (all_of_them / 20) if all_of_them >= 20 else 0.0
        return min(max(by_own, by_all), LONGEST)

    def count(self, client: str) -> float:
        """Count a try as wrong; returns when that was."""
        at = self._clock()
        if client not in self._wrong and len(self._wrong) >= REMEMBERED:
            del self._wrong[next(iter(self._wrong))]  # the oldest makes room
        self._wrong.setdefault(client, deque(maxlen=100)).append(at)
        self._all.append(at)
        return at

    def _forgive(self, client: str, at: float) -> None:
        for known in (self._recent(client), self._in_all()):
            if at in known:
                known.remove(at)

    def _in_all(self) -> deque[float]:
        return _newer_than(self._clock() - FORGIVEN, self._all)

    def _recent(self, client: str) -> deque[float]:
        recent = _newer_than(self._clock() - FORGIVEN, self._wrong.get(client, deque()))
        if not recent:
            self._wrong.pop(client, None)
        return recent


def _newer_than(moment: float, known: deque[float]) -> deque[float]:
    while known and known[0] <= moment:
        known.popleft()
    return known
