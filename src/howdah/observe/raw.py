"""Raw: the JSON of a job and of its events, exactly as the database stores it.

A number in jsonb can have any length and keeps its digits: 1.10 stays 1.10. `job_history` decodes
the JSON for programs. Code that shows it to people, or passes it on, reads it here.

Events have numbers. A follower asks for the events after the last number that it saw, so it
misses none and sees none twice.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from howdah.errors import JobNotFound
from howdah.store import Store, query

SHOWN_EVENTS = 200  # of one job, the last ones
MOST_EVENTS = 1000  # that one call reads
EVENTS_AFTER = """
    select number, kind, data::text, attempt, created_at from howdah.job_events
    where job_id = $1 and number > $2 order by number limit $3
"""


class RawJob(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON of a job as text, and the fingerprint of its last error."""

    data: str
    result: str | None
    events: dict[int, str | None]  # the data of the last events, by number
    fingerprint: str | None


class RawEvent(msgspec.Struct, frozen=True):
    """An event, its data as the stored text."""

    number: int
    kind: str
    data: str | None
    attempt: int
    created_at: datetime


async def raw_job(
    store: Store, id: UUID, *, events: int = SHOWN_EVENTS, within: timedelta = query.WITHIN
) -> RawJob:
    """Read the JSON of one job and of its last events; raises JobNotFound."""
    rows = await query.fetch(
        store,
        within,
        "select data::text, result::text, events_count, howdah.fingerprint(last_error) "
        "from howdah.jobs_by_id(array[$1::uuid])",
        id,
    )
    if not rows:
        raise JobNotFound.with_id(id)
    data, result, events_count, fingerprint = rows[0]
    last = await query.fetch(store, within, EVENTS_AFTER, id, max(0, events_count - events), events)
    return RawJob(
        data=data,
        result=result,
        events={row["number"]: row["data"] for row in last},
        fingerprint=fingerprint,
    )


async def raw_events(
    store: Store,
    id: UUID,
    *,
    after: int = 0,
    limit: int = MOST_EVENTS,
    within: timedelta = query.WITHIN,
) -> list[RawEvent]:
    """Read a job's events after a number, in order; raises JobNotFound."""
    jobs = await query.fetch(store, within, "select from howdah.jobs_by_id(array[$1::uuid])", id)
    if not jobs:
        raise JobNotFound.with_id(id)
    rows = await query.fetch(store, within, EVENTS_AFTER, id, after, limit)
    return [RawEvent(*row) for row in rows]
