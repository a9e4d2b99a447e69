"""Start: count the jobs that match, then enqueue a bulk job."""

from __future__ import annotations

from uuid import UUID

import msgspec

from howdah import payload
from howdah.enqueue import draft, enqueue
from howdah.job import Priority
from howdah.observe import Count, Filter
from howdah.store.ids import new_id
from howdah.web.actions import Action
from howdah.web.bulk.job import count_matching
from howdah.web.bulk.request import BULK, BulkRequest, narrowed
from howdah.web.bulk.runner import runner_of
from howdah.web.context import DashboardContext

ATTEMPTS = 10


async def count(context: DashboardContext, action: Action, wanted: Filter) -> Count | None:
    """Count the jobs that an action would change; None if that takes too long."""
    changeable = narrowed(wanted, action)
    if changeable is None:
        return Count()
    return await count_matching(context.store, changeable, context.within)


async def start(
    context: DashboardContext, who: str, action: Action, wanted: Filter, priority: int | None = None
) -> UUID:
    """Enqueue a bulk job and start the runner; returns the id of the job."""
    bulk_request = BulkRequest(action=action, filter=wanted, who=who, priority=priority)
    id = new_id()
    signed = payload.encode(bulk_request.signed(context.secret, id), "the bulk request")
    await enqueue(
        context.store,
        draft(BULK, signed, priority=int(Priority.EXPLICIT), max_attempts=ATTEMPTS, id=id),
    )
    facts = {} if priority is None else {"priority": priority}
    matching = msgspec.json.encode(bulk_request.payload()["filter"]).decode()
    context.audit(who, "bulk", str(id), action=action, filter=matching, **facts)
    runner_of(context).start()
    return id
