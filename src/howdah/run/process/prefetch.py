"""Prefetch: how many tasks a child may have at once, computed from the times of the last ones.

Short tasks are sent ahead, so that the child never waits for the worker. No task may wait behind a
long one. A longer time counts at once, a shorter one by and by.
"""

from __future__ import annotations

import time

AHEAD = 15  # tasks beside the running one, at most
HORIZON = 0.01  # seconds of work that may be sent ahead


class Prefetch:
    """The times of one child."""

    def __init__(self) -> None:
        self.limit: int = 1
        self._average = 0.0  # seconds
        self._began = 0.0

    def began(self) -> None:
        self._began = time.monotonic()

    def ended(self) -> None:
        seconds = self.elapsed()
        self._average = max(seconds, (self._average + seconds) / 2)
        self.limit = 1 + min(AHEAD, int(HORIZON / max(self._average, 1e-6)))

    def elapsed(self) -> float:
        """How many seconds the running task has taken."""
        return time.monotonic() - self._began

    def stop(self) -> None:
        """Send nothing ahead until the running task has ended."""
        self.limit = 1
