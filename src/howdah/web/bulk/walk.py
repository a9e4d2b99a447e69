"""Walk: a bulk job at work, page by page from the newest job to the oldest.

Comes after  order.py
Comes before actions.py, which moves each page's jobs

Only jobs that were made before the bulk job are touched, and no bulk job ever. A page begins behind
the last, so a job that was moved and matches again does not come again. Where the walk has come to
is noted in an event once a second: after a crash it goes on there.
"""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from howdah import observe
from howdah.client.queue import Queue
from howdah.observe import Count, Filter
from howdah.run.context import JobContext
from howdah.web.actions import Action, move
from howdah.web.bulk.counted import counted
from howdah.web.bulk.order import BULK, Order, narrowed

PAGE = 1000  # jobs that are moved at once
WITHIN = timedelta(seconds=30)  # nobody waits for a page of this
NOTE_EVERY = 1.0  # seconds
WALKED = "walked"  # the kind of the events
_TOP = UUID(int=2**128 - 1)


class Walked(msgspec.Struct, kw_only=True):
    """How far it is."""

    before: UUID = _TOP
    matched: int = 0
    moved: int = 0


async def walk(queue: Queue, ctx: JobContext, order: Order) -> dict[str, int]:
    """Do what was ordered; returns how many jobs matched, and how many were moved."""
    wanted = _before_it(order, ctx)
    if wanted is None:
        return {"matched": 0, "moved": 0}
    walked = await _left_off(queue, ctx)
    way = await _Way.of(queue, wanted, walked)
    noted = time.monotonic()
    while True:
        page = await observe.page(
            queue.store, wanted, before=walked.before, limit=PAGE, within=WITHIN
        )
        ids = [job.id for job in page.jobs if job.job_type != BULK]
        if ids:
            moved = await move(queue, order.who, order.action, ids, order.priority)
            walked.matched += len(ids)
            walked.moved += len(moved)
        if page.before is None:
            break
        walked.before = page.before
        await ctx.progress(way.percent(walked), way.stage(walked))
        if time.monotonic() - noted >= NOTE_EVERY:
            await ctx.emit(WALKED, walked)
            noted = time.monotonic()
    await ctx.progress(100, f"{walked.moved:,} of {walked.matched:,} moved")
    return {"matched": walked.matched, "moved": walked.moved}


def _before_it(order: Order, ctx: JobContext) -> Filter | None:
    """Narrow the filter to jobs that were made before this one and can be moved like this."""
    own = narrowed(order.filter, order.action)
    if own is None:
        return None
    asked = own.created_to
    end = ctx.created_at if asked is None else min(asked, ctx.created_at)
    return msgspec.structs.replace(own, created_to=end)


async def _left_off(queue: Queue, ctx: JobContext) -> Walked:
    """Read where an attempt before this one has come to."""
    known = await observe.life(queue.store, ctx.id, events=5, within=WITHIN)
    for event in reversed(known.events):
        if event.kind == WALKED:
            return msgspec.convert(event.data, Walked)
    return Walked()


class _Way:
    """The whole of it, as far as it is known at the beginning."""

    def __init__(self, total: Count | None, done: int, first: int, last: int) -> None:
        self._total = total
        self._done = done
        self._first = first
        self._last = last

    @classmethod
    async def of(cls, queue: Queue, wanted: Filter, walked: Walked) -> _Way:
        """Count what there is to do; beyond what can be counted, look how far back it reaches."""
        total = await counted(queue.store, wanted, WITHIN / 5)
        ends = await observe.ends(queue.store, wanted, within=WITHIN)
        first, last = (0, 0) if ends is None else (end.int for end in ends)
        return cls(total, walked.matched, first, last)

    def percent(self, walked: Walked) -> float:
        """By jobs where they could be counted, else by how far back the walk has come."""
        if self._total is not None and not self._total.more:
            share = walked.matched / max(1, self._total.jobs + self._done)
        else:
            share = (self._first - walked.before.int) / max(1, self._first - self._last)
        return min(99.0, max(0.0, 100 * share))

    def stage(self, walked: Walked) -> str:
        if self._total is None:
            return f"{walked.matched:,}"
        known = Count(self._total.jobs + self._done, self._total.more)
        return f"{walked.matched:,} of {'' if known.more else 'about '}{known}"


def job(queue: Queue, secret: str) -> Any:
    """Make the function of a bulk job: it works on this queue, and obeys who has the secret."""

    async def bulk(
        ctx: JobContext,
        action: Action,
        filter: Filter,
        who: str,
        priority: int | None = None,
        signature: str = "",
    ) -> dict[str, int]:
        order = Order(action=action, filter=filter, who=who, priority=priority)
        order.check(secret, ctx.id, signature)
        return await walk(queue, ctx, order)

    return bulk
