"""Bulk: do something to all jobs that match, as a job with its own progress.

    order.py   what is asked for: an action, a filter, who; signed, so that only a dashboard orders
    counted.py how many jobs match, as exactly as there is time for
    walk.py    the job itself: page by page, from the newest job to the oldest
    hands.py   the small worker inside the dashboard that runs such jobs, while there are any
    start.py   hands an order over, after a look at how much it will be

A bulk job is a job like any other: it can be watched, cancelled, and goes on after a crash where it
was. Any dashboard of the same database and the same secret that may act runs it.
"""

from __future__ import annotations

from howdah.web.bulk.hands import Hands, LeftBehind, hands_of
from howdah.web.bulk.order import BULK, MOVES, Order, narrowed
from howdah.web.bulk.start import count, start

__all__ = [
    "BULK",
    "MOVES",
    "Hands",
    "LeftBehind",
    "Order",
    "count",
    "hands_of",
    "narrowed",
    "start",
]
