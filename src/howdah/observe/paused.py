"""Paused: which job types are paused, since when, by whom and why.

In SQL  sql/20_tables/paused_types.sql
"""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from howdah.store import Store, query


class Paused(msgspec.Struct, frozen=True):
    """A job type that no worker may claim."""

    job_type: str
    paused_at: datetime
    paused_by: str
    reason: str | None


async def paused(store: Store, *, within: timedelta = query.WITHIN) -> dict[str, Paused]:
    """Return the paused types by name."""
    rows = await query.fetch(
        store,
        within,
        "select job_type, paused_at, paused_by, reason from howdah.paused_types order by 1",
    )
    return {row[0]: Paused(*row) for row in rows}
