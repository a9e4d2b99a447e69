"""GrowingPause: the pause before the next retry; it doubles each time, up to a limit.

Every loop that retries uses it. Call `next` after a failure and `reset` after a success. It neither
sleeps nor adds jitter: the caller does, because some callers must wake early. Loops that wait for
the same database share a `Reachable`: the first of them that succeeds again ends all their pauses.
"""

from __future__ import annotations

from howdah.reachable import Reachable


class GrowingPause:
    """Seconds to wait before a retry: `first`, then twice as long each time, at most `longest`."""

    __slots__ = ("_announced", "_failed", "_first", "_longest", "_next", "_reachable")

    def __init__(self, first: float, longest: float, reachable: Reachable | None = None) -> None:
        self._first = first
        self._longest = longest
        self._next = first
        self._failed = False  # since the last success
        self._reachable = reachable
        self._announced = reachable.announced if reachable is not None else 0

    def next(self) -> float:
        """Return the seconds to wait now, and double the pause for the next call."""
        if self._reachable is not None and self._announced != self._reachable.announced:
            # another loop succeeded while our call was failing: it may be our turn soon
            self._announced = self._reachable.announced
            self._next = self._first
        self._failed = True
        seconds = self._next
        self._next = min(seconds * 2, self._longest)
        return seconds

    def reset(self) -> None:
        """Start again with the first pause; after a failure, also end the pauses of the others."""
        self._next = self._first
        if self._failed and self._reachable is not None:
            self._reachable.announce()
        self._failed = False
