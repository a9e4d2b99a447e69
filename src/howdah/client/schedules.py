"""Schedules: `queue.schedules`, which lists, sets, pauses, resumes and removes schedules.

In SQL  sql/37_schedules/

`@queue.cron(…)` and `@queue.every(…)` declare schedules in code. Workers write those when they
start, and never touch one that was set here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol

from howdah.checks.arguments import check_whole
from howdah.checks.schedule_names import check_schedule_name
from howdah.client.follow import Follower
from howdah.client.handle import Handle
from howdah.handler import Handler
from howdah.job import Draft
from howdah.observe.schedules import (
    MOST_UPCOMING,
    Schedule,
    Upcoming,
    schedule,
    schedules,
    upcoming,
)
from howdah.store import Store
from howdah.store import schedules as store_schedules
from howdah.store.schedules import Plan, check_scheduled
from howdah.timing import Missed, Overlap, check_missed, check_overlap, check_timing


class QueueWithHandlers(Protocol):
    """What the schedules need of their queue."""

    @property
    def store(self) -> Store: ...
    @property
    def follower(self) -> Follower: ...
    @property
    def handlers(self) -> Mapping[str, Handler]: ...


class Schedules:
    """The schedules of one queue."""

    def __init__(self, queue: QueueWithHandlers) -> None:
        self._queue = queue

    async def get(self, name: str) -> Schedule:
        """Return one schedule; raises BadInput if there is none of this name."""
        return await schedule(self._queue.store, check_schedule_name(name))

    async def upcoming(self, count: int = 10) -> Sequence[Upcoming]:
        """Return the next firings of all schedules, the next one first."""
        return await upcoming(self._queue.store, check_whole("count", count, 1, MOST_UPCOMING))

    async def set(
        self,
        name: str,
        draft: Draft,
        *,
        cron: str | None = None,
        every: timedelta | float | None = None,
        tz: str = "UTC",
        missed: Missed = "last",
        overlap: Overlap = "allow",
    ) -> Schedule:
        """Make a schedule, or change it as a whole: each firing enqueues a job like the draft.

        The draft is of `job_type.draft(…)`, with the options of its jobs, or of `queue.draft`.
        `cron` is an expression in the time zone `tz`, `every` the time between two firings; the
        first one is so long from now. With `missed`, firings that no worker could do within a
        minute enqueue nothing, one job for the last of them, or a job for all, at most the last
        100. With `overlap="skip"` a firing enqueues nothing while the job of the firing before has
        not ended. Code does not touch the schedule any more, also one that code has declared.
        """
        plan = Plan(
            name=check_schedule_name(name),
            draft=check_scheduled(draft),
            timing=check_timing(cron, every, tz),
            missed=check_missed(missed),
            overlap=check_overlap(overlap),
        )
        await store_schedules.set_schedule(self._queue.store, plan)
        return await schedule(self._queue.store, plan.name)

    async def pause(self, name: str) -> bool:
        """Let a schedule not fire, until somebody resumes it; returns False if it was paused."""
        return await store_schedules.pause_schedule(self._queue.store, check_schedule_name(name))

    async def resume(self, name: str) -> bool:
        """Let a schedule fire again, from now on; returns whether it was paused.

        The firings of the time in which it was paused are not made up for.
        """
        return await store_schedules.resume_schedule(self._queue.store, check_schedule_name(name))

    async def remove(self, name: str) -> bool:
        """Remove a schedule, and keep its jobs; returns False if there is none.

        One that code declares comes back when the next worker starts: pause it instead.
        """
        return await store_schedules.remove_schedule(self._queue.store, check_schedule_name(name))

    async def run_now(self, name: str) -> Handle[Any]:
        """Enqueue a job of a schedule at once; its next firing stays."""
        queue = self._queue
        id = await store_schedules.run_schedule_now(queue.store, check_schedule_name(name))
        return Handle(id, queue.store, queue.follower, queue.handlers)

    async def list(self) -> Sequence[Schedule]:
        """Return all schedules by name."""
        return await schedules(self._queue.store)
