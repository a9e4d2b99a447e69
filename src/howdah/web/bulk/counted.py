"""Counted: how many jobs match, as exactly as there is time for.

Comes before  start.py, which tells it first, and walk.py, which tells how far it is
"""

from __future__ import annotations

from datetime import timedelta

from howdah import observe
from howdah.observe import Count, Filter, TookTooLong
from howdah.store import Store

EXACTLY = 100_000  # so many are counted one by one, when there is time


async def counted(store: Store, wanted: Filter, within: timedelta) -> Count | None:
    """Count what matches; None: there was no time to do so even roughly."""
    for limits in ({"cap": EXACTLY, "depth": 2 * EXACTLY}, {}):
        try:
            return await observe.count(store, wanted, **limits, within=within)
        except TookTooLong:
            continue
    return None
