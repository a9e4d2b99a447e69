"""Pace: how many errands a child may have at once, judged by how long the last ones took.

Short errands are given ahead, so that the child never waits for the worker; behind one that takes
long, others must not wait. Bad news counts at once, good news by and by.
"""

from __future__ import annotations

import time

AHEAD = 15  # errands beside the one at work, at most
HORIZON = 0.01  # seconds of work that may be given ahead


class Pace:
    """The times of one child."""

    def __init__(self) -> None:
        self.limit: int = 1
        self._usual = 0.0
        self._since = 0.0

    def began(self) -> None:
        self._since = time.monotonic()

    def ended(self) -> None:
        took = self.so_far()
        self._usual = max(took, (self._usual + took) / 2)
        self.limit = 1 + min(AHEAD, int(HORIZON / max(self._usual, 1e-6)))

    def so_far(self) -> float:
        """How many seconds the one at work has taken."""
        return time.monotonic() - self._since

    def stall(self) -> None:
        """Give nothing ahead until the one at work has ended."""
        self.limit = 1
