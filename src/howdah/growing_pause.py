"""GrowingPause: the pause before the next retry; it doubles each time, up to a limit.

Every loop that retries uses it. Call `next` after a failure and `reset` after a success. It neither
sleeps nor adds jitter: the caller does, because some callers must wake early.
"""

from __future__ import annotations


class GrowingPause:
    """Seconds to wait before a retry: `first`, then twice as long each time, at most `longest`."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def next(self) -> float:
        """Return the seconds to wait now, and double the pause for the next call."""
        seconds = self._next
        self._next = min(seconds * 2, self._longest)
        return seconds

    def reset(self) -> None:
        """Start again with the first pause."""
        self._next = self._first
