"""Job: the handler of bulk jobs. It changes jobs page by page, from the newest to the oldest.

It changes only jobs that were created before the bulk job, and never a bulk job. Each page begins
after the last one, so no job is changed twice, even if it matches again. An event once a second
stores a checkpoint; after a crash the next attempt continues there.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from howdah import observe
from howdah.client.matching import act_on_matching
from howdah.client.queue import Queue
from howdah.observe import Count, Filter, TookTooLong
from howdah.run.context import JobContext
from howdah.store import Store
from howdah.web.actions import Action, move
from howdah.web.bulk.request import BULK, BulkRequest, narrowed

PAGE = 1000  # jobs per page
WITHIN = timedelta(seconds=30)  # of a query; no user waits for it
CHECKPOINT_EVERY = 1.0  # seconds
CHECKPOINT = "checkpoint"  # the kind of the event
EXACTLY = 100_000  # count up to so many jobs exactly
_MAX_ID = UUID(int=2**128 - 1)


class Checkpoint(msgspec.Struct, kw_only=True):
    """How far a bulk job has come."""

    before: UUID = _MAX_ID
    matched: int = 0
    moved: int = 0


async def run_bulk(queue: Queue, ctx: JobContext, request: BulkRequest) -> dict[str, int]:
    """Do the action to all matching jobs; returns how many matched and how many changed."""
    wanted = _changeable(request, ctx)
    if wanted is None:
        return {"matched": 0, "moved": 0}
    checkpoint = await _last_checkpoint(queue, ctx)
    estimate = await _Estimate.of(queue, wanted, checkpoint)
    saved_at = time.monotonic()

    async def act(ids: list[UUID]) -> Collection[UUID]:
        return await move(queue, request.who, request.action, ids, request.priority)

    async for done in act_on_matching(
        queue.store, wanted, act, before=checkpoint.before, limit=PAGE, except_type=BULK
    ):
        checkpoint.matched += done.matched
        checkpoint.moved += done.moved
        if done.before is None:
            continue
        checkpoint.before = done.before
        await ctx.progress(estimate.percent(checkpoint), estimate.stage(checkpoint))
        if time.monotonic() - saved_at >= CHECKPOINT_EVERY:
            await ctx.emit(CHECKPOINT, checkpoint)
            saved_at = time.monotonic()
    await ctx.progress(100, f"{checkpoint.moved:,} of {checkpoint.matched:,} moved")
    return {"matched": checkpoint.matched, "moved": checkpoint.moved}


def _changeable(request: BulkRequest, ctx: JobContext) -> Filter | None:
    """Narrow the filter to states that can change, and to jobs older than this one."""
    wanted = narrowed(request.filter, request.action)
    if wanted is None:
        return None
    limit = wanted.created_to
    end = ctx.created_at if limit is None else min(limit, ctx.created_at)
    return msgspec.structs.replace(wanted, created_to=end)


async def _last_checkpoint(queue: Queue, ctx: JobContext) -> Checkpoint:
    """Read the checkpoint of an earlier attempt."""
    history = await observe.job_history(queue.store, ctx.id, events=5, within=WITHIN)
    for event in reversed(history.events):
        if event.kind == CHECKPOINT:
            return msgspec.convert(event.data, Checkpoint)
    return Checkpoint()


class _Estimate:
    """The total amount of work, estimated at the start."""

    def __init__(self, total: Count | None, done: int, first: int, last: int) -> None:
        self._total = total
        self._done = done
        self._first = first
        self._last = last

    @classmethod
    async def of(cls, queue: Queue, wanted: Filter, checkpoint: Checkpoint) -> _Estimate:
        """Count the jobs; and find the newest and oldest id, in case there are too many."""
        total = await count_matching(queue.store, wanted, WITHIN / 5)
        ends = await observe.newest_and_oldest(queue.store, wanted, within=WITHIN)
        first, last = (0, 0) if ends is None else (end.int for end in ends)
        return cls(total, checkpoint.matched, first, last)

    def percent(self, checkpoint: Checkpoint) -> float:
        """By jobs if they could be counted, else by how far back the ids go."""
        if self._total is not None and not self._total.more:
            share = checkpoint.matched / max(1, self._total.jobs + self._done)
        else:
            share = (self._first - checkpoint.before.int) / max(1, self._first - self._last)
        return min(99.0, max(0.0, 100 * share))

    def stage(self, checkpoint: Checkpoint) -> str:
        if self._total is None:
            return f"{checkpoint.matched:,}"
        total = Count(self._total.jobs + self._done, self._total.more)
        return f"{checkpoint.matched:,} of {'' if total.more else 'about '}{total}"


async def count_matching(store: Store, wanted: Filter, within: timedelta) -> Count | None:
    """Count the jobs that match: exactly if time allows, else roughly. None: not in time."""
    for limits in ({"cap": EXACTLY, "depth": 2 * EXACTLY}, {}):
        try:
            return await observe.count(store, wanted, **limits, within=within)
        except TookTooLong:
            continue
    return None


def bulk_handler(queue: Queue, secret: str) -> Any:
    """Make the handler of bulk jobs for a queue; it checks signatures with this secret."""

    async def bulk(
        ctx: JobContext,
        action: Action,
        filter: Filter,
        who: str,
        priority: int | None = None,
        signature: str = "",
    ) -> dict[str, int]:
        request = BulkRequest(action=action, filter=filter, who=who, priority=priority)
        request.check(secret, ctx.id, signature)
        return await run_bulk(queue, ctx, request)

    return bulk
