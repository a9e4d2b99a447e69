"""Emitted: the events of a job from a number on, their data as the text that the database keeps.

A follower asks for what is above the last number it saw, so it misses nothing and repeats nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from howdah.errors import JobNotFound
from howdah.store import Store, query

LIMIT = 1000


class EmittedText(msgspec.Struct, frozen=True):
    """An event, its data as JSON that nobody has read yet."""

    number: int
    kind: str
    data: str | None
    attempt: int
    created_at: datetime


async def emitted(
    store: Store,
    id: UUID,
    *,
    after: int = 0,
    limit: int = LIMIT,
    within: timedelta = query.WITHIN,
) -> list[EmittedText]:
    """Read a job's events above a number, in order; raises JobNotFound."""
    known = await query.fetch(store, within, "select from howdah.jobs_by_id(array[$1::uuid])", id)
    if not known:
        raise JobNotFound(f"there is no job {id}: never committed, or pruned after its retention")
    rows = await query.fetch(
        store,
        within,
        "select number, kind, data::text, attempt, created_at from howdah.job_events "
        "where job_id = $1 and number > $2 order by number limit $3",
        id,
        after,
        limit,
    )
    return [EmittedText(*row) for row in rows]
