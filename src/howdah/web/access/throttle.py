"""Throttle: delay login attempts after wrong ones, without locking anybody out.

An attempt waits before it is checked. The delay grows with the number of wrong attempts in the
last minute, of the same client or of all clients, up to ten seconds. A right attempt succeeds
after the delay. An attempt counts as wrong until it succeeds, so parallel attempts gain nothing.

At most 400 attempts wait at once, which allows at most 40 guesses a second. More are refused
unread; from 200 on, a client may have only one.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException

FORGET_AFTER = 60.0  # seconds after which a wrong attempt no longer counts
MAX_WAIT = 10.0  # seconds
MAX_REMEMBERED = 10_000  # clients; and wrong attempts of all clients
ONE_EACH_FROM = 200  # waiting attempts from which on each client may have only one
MAX_WAITING = 400  # attempts at once
TOO_MANY = "Too many login attempts are waiting. Try again in a few seconds."


class LoginAttempt:
    """One login attempt; it counts as wrong until `succeeded` is set."""

    succeeded: bool = False


class Throttle:
    """Counts the wrong attempts of the last minute and delays new ones."""

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._wrong: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=MAX_REMEMBERED)
        self._waiting: Counter[str] = Counter()

    @asynccontextmanager
    async def attempt(self, client: str) -> AsyncGenerator[LoginAttempt]:
        """Wait for the delay of this client; set `succeeded` if the check passes."""
        waiting = self._waiting.total()
        if waiting >= MAX_WAITING or (waiting >= ONE_EACH_FROM and self._waiting[client]):
            raise HTTPException(429, TOO_MANY, {"Retry-After": str(int(MAX_WAIT))})
        attempt, wait, at = LoginAttempt(), self.wait(client), self.count(client)
        self._waiting[client] += 1
        try:
            if wait:
                await self._sleep(wait)
        finally:
            self._waiting[client] -= 1
            self._waiting += Counter()  # drop the zeros
        yield attempt
        if attempt.succeeded:
            self._uncount(client, at)

    def wait(self, client: str) -> float:
        """Return how many seconds an attempt of this client waits now."""
        own, total = len(self._recent(client)), len(self._recent_of_all())
        by_own = 0.1 * 2**own if own else 0.0
        by_total = 0.1 * 2 ** (total / 20) if total >= 20 else 0.0
        return min(max(by_own, by_total), MAX_WAIT)

    def count(self, client: str) -> float:
        """Count an attempt as wrong; returns its time."""
        at = self._clock()
        if client not in self._wrong and len(self._wrong) >= MAX_REMEMBERED:
            del self._wrong[next(iter(self._wrong))]  # the oldest
        self._wrong.setdefault(client, deque(maxlen=100)).append(at)
        self._all.append(at)
        return at

    def _uncount(self, client: str, at: float) -> None:
        for times in (self._recent(client), self._recent_of_all()):
            if at in times:
                times.remove(at)

    def _recent_of_all(self) -> deque[float]:
        return _newer_than(self._clock() - FORGET_AFTER, self._all)

    def _recent(self, client: str) -> deque[float]:
        recent = _newer_than(self._clock() - FORGET_AFTER, self._wrong.get(client, deque()))
        if not recent:
            self._wrong.pop(client, None)
        return recent


def _newer_than(moment: float, times: deque[float]) -> deque[float]:
    while times and times[0] <= moment:
        times.popleft()
    return times
