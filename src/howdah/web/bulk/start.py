"""Start: hand over a bulk job, after a look at how much it will be.

Comes after  order.py, hands.py
Comes before pages/, api/
"""

from __future__ import annotations

from uuid import UUID

import msgspec

from howdah import payload
from howdah.enqueue import draft, enqueue
from howdah.ids import new_id
from howdah.job import Priority
from howdah.observe import Count, Filter
from howdah.web.actions import Action
from howdah.web.bulk.counted import counted
from howdah.web.bulk.hands import hands_of
from howdah.web.bulk.order import BULK, Order, narrowed
from howdah.web.desk import Desk

ATTEMPTS = 10


async def count(desk: Desk, action: Action, wanted: Filter) -> Count | None:
    """Count what an action would move, as exactly as there is time for; None: not even roughly."""
    own = narrowed(wanted, action)
    return Count() if own is None else await counted(desk.store, own, desk.within)


async def start(
    desk: Desk, who: str, action: Action, wanted: Filter, priority: int | None = None
) -> UUID:
    """Hand over the job that does it, and see to it that somebody runs it; returns its id."""
    order = Order(action=action, filter=wanted, who=who, priority=priority)
    id = new_id()
    signed = payload.encode(order.signed(desk.secret, id), "the order")
    await enqueue(
        desk.store,
        draft(BULK, signed, priority=int(Priority.EXPLICIT), max_attempts=ATTEMPTS, id=id),
    )
    facts = {} if priority is None else {"priority": priority}
    matching = msgspec.json.encode(order.payload()["filter"]).decode()
    desk.note(who, "bulk", str(id), action=action, filter=matching, **facts)
    hands_of(desk).needed()
    return id
