"""Exact: the JSON of one job as PostgreSQL writes it, and what its error is called.

Numbers in jsonb have any length, and 1.10 is not 1.1 to whoever wrote it. `life` decodes them for
programs; this is for whoever must show them as they are.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.errors import JobNotFound
from howdah.observe.history import EVENTS
from howdah.store import Store, query


class Exact(msgspec.Struct, frozen=True, kw_only=True):
    """JSON of a job, as text."""

    data: str
    result: str | None
    events: dict[int, str | None]  # by number, the last ones
    fingerprint: str | None  # of the last error


async def exact(
    store: Store, id: UUID, *, events: int = EVENTS, within: timedelta = query.WITHIN
) -> Exact:
    """Read the JSON of one job and of its last events; raises JobNotFound."""
    rows = await query.fetch(
        store,
        within,
        "select data::text, result::text, events_count, howdah.fingerprint(last_error) "
        "from howdah.jobs_by_id(array[$1::uuid])",
        id,
    )
    if not rows:
        raise JobNotFound(f"there is no job {id}: never committed, or pruned after its retention")
    data, result, emitted, fingerprint = rows[0]
    said = await query.fetch(
        store,
        within,
        "select number, data::text from howdah.job_events "
        "where job_id = $1 and number > $2 order by number",
        id,
        max(0, emitted - events),
    )
    return Exact(
        data=data,
        result=result,
        events={row[0]: row[1] for row in said},
        fingerprint=fingerprint,
    )
