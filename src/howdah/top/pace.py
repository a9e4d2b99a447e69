"""Pace: how often to look, so that looking costs next to nothing.

A look that kept the database busy for long is followed by a pause that is longer in proportion: all
looks together take at most a fiftieth of its time, wherever it is. Each part has its share of that,
so that one that is slow is seen more seldom and holds up no other. What counts is the mean of the
last looks, so that one hiccup does not stop the picture; the very first, which connects and makes
plans, does not count.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

TIMES = 50  # so many times as long as it looks, it pauses: less than 2 %
LAST = 5  # looks that the mean is of


class Pace:
    """When one part is due to be looked at again."""

    def __init__(
        self, share: float, least: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._share = share
        self._least = least
        self._clock = clock
        self._due = clock()
        self._last: deque[float] = deque(maxlen=LAST)
        self._cold = True

    @property
    def wait(self) -> float:
        """Seconds until it is due."""
        return max(0.0, self._due - self._clock())

    def looked(self, took: float) -> None:
        """Pause after a look that kept the database busy for so many seconds."""
        if self._cold:
            self._cold = False
        else:
            self._last.append(took)
        mean = sum(self._last) / (len(self._last) or 1)
        self._due = self._clock() + max(self._least, mean * TIMES / self._share)

    def missed(self, pause: float) -> None:
        """Pause after a look that nobody answered, which cost no database anything."""
        self._cold = True
        self._due = self._clock() + pause

    def hurry(self) -> None:
        """Let it be due now: a person asked for it."""
        self._due = self._clock()
