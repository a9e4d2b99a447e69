"""Revoked: the sessions that were logged out before their cookies expire.

Each process keeps its own list, until the cookies expire. By default each process also has its own
secret, so no other process accepts the cookie.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Revoked:
    """Sessions whose cookies are no longer valid."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._revoked_at: dict[str, float] = {}  # oldest first

    def add(self, session: str) -> None:
        """Revoke a session, and forget those that have expired."""
        now = self._clock()
        for old, revoked_at in list(self._revoked_at.items()):
            if now - revoked_at <= self._seconds:
                break
            del self._revoked_at[old]
        self._revoked_at.setdefault(session, now)

    def __contains__(self, session: str) -> bool:
        return session in self._revoked_at

    def __len__(self) -> int:
        return len(self._revoked_at)
