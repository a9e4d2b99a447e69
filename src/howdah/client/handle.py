"""Handle: one job: its state, its result, its events.

A handle is an id and a queue: another process can make it from the id alone, at any time
(`queue.handle(id)`). If the job's function is registered in this process, the result has the type
of the function's annotation; otherwise it is plain JSON.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID

from howdah.checks.arguments import MOST_ATTEMPTS, MOST_EVENTS, check_whole
from howdah.checks.durations import check_wait
from howdah.checks.signals import check_signal_name, signal_data
from howdah.client.follow import Follower
from howdah.errors import JobCancelled, JobFailed, JobNotFound
from howdah.events import Ended, Event, Progressed
from howdah.handler import Handler
from howdah.job import Job
from howdah.observe.job_history import events_after
from howdah.states import State
from howdah.store import Store
from howdah.store import settle as store_settle
from howdah.store import steps as store_steps
from howdah.store import upkeep as store_upkeep
from howdah.store.watch import jobs_by_id
from howdah.text.reasons import reason_from

R = TypeVar("R")


class Handle(Generic[R]):
    """A job that was enqueued; `R` is what its function returns."""

    def __init__(
        self,
        id: UUID,
        store: Store,
        follower: Follower,
        handlers: Mapping[str, Handler],
        *,
        existed: bool = False,
    ) -> None:
        self.id = id
        self.existed = existed  # whether another enqueue had added it: see unique=
        self._store = store
        self._follower = follower
        self._handlers = handlers

    def __repr__(self) -> str:
        return f"<Handle of job {self.id}>"

    async def job(self) -> Job:
        """Return the current state of the job; raises JobNotFound once it is pruned."""
        jobs = await jobs_by_id(self._store, [self.id])
        if not jobs:
            raise JobNotFound.with_id(self.id)
        return jobs[0]

    async def status(self) -> State:
        return (await self.job()).status

    async def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait until the job has ended, and return its result in the type of the annotation.

        Raises JobFailed, JobCancelled, JobNotFound, ResultDoesNotFit, or TimeoutError after
        `timeout`; the job itself goes on.
        """
        seconds = None if timeout is None else check_wait("timeout", timeout).total_seconds()
        subscription = self._follower.subscribe(self.id)
        try:
            async with asyncio.timeout(seconds):
                while not (job := await subscription.next()).status.finished:
                    pass
        finally:
            subscription.close()
        if job.status is State.COMPLETED:
            handler = self._handlers.get(job.job_type)
            result: Any = job.result
            if handler is None:
                return result
            return handler.returns.decode(result, f"job {self.id} ({job.job_type})")
        if job.status is State.CANCELLED:
            raise JobCancelled(f"job {self.id} ({job.job_type}) was cancelled: {job.last_error}")
        raise JobFailed(
            f"job {self.id} ({job.job_type}) failed at attempt {job.attempts}: {job.last_error}",
            job.last_error,
        )

    async def events(self, after: int = 0) -> AsyncGenerator[Event, None]:
        """Follow the job: its progress, the events above number `after`, and its end.

        To go on after an interruption, pass the number of the last event as `after`.
        """
        check_whole("after", after, 0, MOST_EVENTS)
        subscription = self._follower.subscribe(self.id)
        previous: Progressed | None = None
        try:
            while True:
                job = await subscription.next()
                while after < job.events_count:
                    emitted = await events_after(self._store, self.id, after)
                    for event in emitted:
                        yield event
                        after = event.number
                    if not emitted:
                        break  # the rest is pruned
                current = Progressed(job.status, job.progress, job.current_stage, job.attempts)
                if current != previous:
                    previous = current
                    yield current
                if job.status.finished:
                    error = None if job.status is State.COMPLETED else job.last_error
                    yield Ended(job.status, job.result, error)
                    return
        finally:
            subscription.close()

    async def signal(self, name: str, data: Any = None) -> bool:
        """Send the job a signal; returns whether it waited for it. Raises JobEnded."""
        return await store_steps.signal(
            self._store, self.id, check_signal_name(name), signal_data(data)
        )

    async def cancel(self, reason: object = "cancelled") -> bool:
        """Cancel the job if it waits or runs; False if it had ended already."""
        why = reason_from(reason) or "cancelled"
        return bool(await store_settle.cancel(self._store, [self.id], why))

    async def requeue(self, attempts: int = 1) -> bool:
        """Give a failed or cancelled job more attempts; False if it is neither."""
        check_whole("attempts", attempts, 1, MOST_ATTEMPTS)
        return bool(await store_upkeep.requeue(self._store, [self.id], attempts))
