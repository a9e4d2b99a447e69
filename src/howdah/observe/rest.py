"""Rest: how long to pause after a query, so that repeated queries use at most 2 % of the server.

Comes after  store/query.py  which measures how long the server was busy
Comes before top/ and web/live.py

The pause is 50 times the mean of the last costs. The mean keeps one slow query from stopping
the updates for a long time.
"""

from __future__ import annotations

from collections import deque

FACTOR = 50  # the pause lasts so many times as long as the queries kept the server busy
REMEMBERED = 5  # costs that the mean is taken of


def recent_costs() -> deque[float]:
    """Make an empty list of the last costs, in seconds of the server's time."""
    return deque(maxlen=REMEMBERED)


def rest_after(costs: deque[float], share: float = 1.0) -> float:
    """Return the seconds to pause; `share` is the part of the 2 % that the caller may use."""
    return FACTOR / share * sum(costs) / max(1, len(costs))
