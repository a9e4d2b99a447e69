"""Actions: what the keys do to the queue.

Each action has a question, a call that runs after the answer "yes", and a result.

The result says what the call changed, not what was asked for: a job may end while the
question is on the screen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from howdah import observe
from howdah.client.matching import act_on_matching
from howdah.client.queue import Queue
from howdah.states import State
from howdah.store import steer
from howdah.text.wording import jobs

ShowMessage = Callable[[str], None]


@dataclass(frozen=True)
class Action:
    """A change to the queue, and the question that is asked before it."""

    question: str
    run: Callable[[ShowMessage], Awaitable[str]]  # shows progress, returns the result


def cancel(queue: Queue, id: UUID, job_type: str) -> Action:
    async def run(_show: ShowMessage) -> str:
        moved = await queue.cancel([id], "cancelled in howdah top")
        return f"Cancelled {job_type} {id}." if moved else f"{job_type} {id} had already ended."

    return Action(f"Cancel this job of the type {job_type}?\n\n{id}", run)


def requeue(queue: Queue, id: UUID, job_type: str) -> Action:
    async def run(_show: ShowMessage) -> str:
        moved = await queue.requeue([id])
        if moved:
            return f"Requeued {job_type} {id}, with one more attempt."
        return f"{job_type} {id} is neither failed nor cancelled: nothing was requeued."

    return Action(f"Give this job of the type {job_type} one more attempt?\n\n{id}", run)


async def requeue_matching(queue: Queue, filter: observe.Filter, what: str) -> Action:
    """Requeue every job that matches, each job only once."""
    try:
        count = jobs(await observe.count(queue.store, filter))
    except observe.TookTooLong:
        count = "all jobs"

    async def run(show: ShowMessage) -> str:
        moved = 0
        async for done in act_on_matching(queue.store, filter, queue.requeue):
            moved += done.moved
            show(f"Requeued {jobs(moved)} …")
        return f"Requeued {jobs(moved)} {what}."

    return Action(f"Give {count} {what} one more attempt each?", run)


async def requeue_type(queue: Queue, job_type: str) -> Action:
    filter = observe.Filter(status=(State.FAILED,), job_type=(job_type,))
    return await requeue_matching(queue, filter, f"of the type {job_type} that failed")


async def requeue_group(queue: Queue, group: observe.FailureGroup) -> Action:
    return await requeue_matching(
        queue, group.filter, f"of the type {group.job_type} that failed with this error"
    )


async def pause_or_resume(queue: Queue, job_type: str) -> Action:
    """Pause a type; resume it if it is paused."""
    if job_type in await observe.paused(queue.store):

        async def resume(_show: ShowMessage) -> str:
            resumed = await queue.resume(job_type)
            return f"Resumed {job_type}." if resumed else f"{job_type} was not paused any more."

        return Action(f"Resume {job_type}? Workers claim its jobs again.", resume)

    async def pause(_show: ShowMessage) -> str:
        paused = await queue.pause(job_type)
        return f"Paused {job_type}." if paused else f"{job_type} was already paused."

    return Action(
        f"Pause {job_type}? No worker claims its jobs until it is resumed. "
        "Running jobs go on to their end.",
        pause,
    )


def drain(queue: Queue, worker_id: str) -> Action:
    async def run(_show: ShowMessage) -> str:
        if await steer.drain(queue.store, worker_id):
            return f"Asked {worker_id} to stop once its jobs have ended."
        return f"{worker_id} is not alive: nothing was changed."

    return Action(
        f"Drain the worker {worker_id}? It claims no more jobs, finishes those it has, and stops.",
        run,
    )
