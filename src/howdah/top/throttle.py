"""Throttle: decides how often to poll, so that polling costs at most 2 % of the database's time.

The pause after a poll is fifty times as long as polls keep the database busy. Each part of the
view has a share of that budget, so a slow part is read less often and delays no other part. The
mean of the last polls counts, so one slow poll does not freeze the view. The first poll does not
count: it also connects and prepares its statements.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from howdah.observe.rest import recent_costs, rest_after


class Throttle:
    """Knows when one part is due again."""

    def __init__(
        self, share: float, min_pause: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._share = share
        self._min_pause = min_pause
        self._clock = clock
        self._due = clock()
        self._costs: deque[float] = recent_costs()
        self._first = True

    @property
    def wait(self) -> float:
        """Seconds until the part is due."""
        return max(0.0, self._due - self._clock())

    def record(self, busy: float) -> None:
        """Pause after a poll that kept the database busy for `busy` seconds."""
        if self._first:
            self._first = False
        else:
            self._costs.append(busy)
        self._due = self._clock() + max(self._min_pause, rest_after(self._costs, self._share))

    def skip(self, pause: float) -> None:
        """Pause after a poll that got no answer, and so cost the database nothing."""
        self._first = True
        self._due = self._clock() + pause

    def make_due(self) -> None:
        """Make the part due now: a person asked for it."""
        self._due = self._clock()
