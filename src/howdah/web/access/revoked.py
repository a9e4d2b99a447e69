"""Revoked: the sessions that were left before their cookies end.

Each process remembers those that were left with it, for as long as their cookies would hold. By
default its secret is its own, so no other process takes the cookie, and none after a restart.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Revoked:
    """Sessions whose cookies count no more."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._left_at: dict[str, float] = {}  # the oldest first

    def add(self, session: str) -> None:
        """Remember that a session was left."""
        now = self._clock()
        for known, left_at in list(self._left_at.items()):
            if now - left_at <= self._seconds:
                break
            del self._left_at[known]
        self._left_at.setdefault(session, now)

    def __contains__(self, session: str) -> bool:
        return session in self._left_at

    def __len__(self) -> int:
        return len(self._left_at)
