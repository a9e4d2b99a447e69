"""Deeds: what the keys do to the queue: a question first, then the act, then what was moved.

Comes after  the verbs of the queue, the same that the command line and the dashboard use

A deed says what it moved, not what it was asked to move: a job may have ended while the question
stood on the screen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from howdah import observe
from howdah.client.queue import Queue
from howdah.observe.wording import jobs
from howdah.states import State

Say = Callable[[str], None]
PAGE = 500  # jobs that are requeued in one go


@dataclass(frozen=True)
class Deed:
    """Something to do to the queue, once somebody said yes."""

    question: str
    do: Callable[[Say], Awaitable[str]]  # says how far it is, returns what it moved


def cancel(queue: Queue, id: UUID, job_type: str) -> Deed:
    async def do(_say: Say) -> str:
        moved = await queue.cancel([id], "cancelled in howdah top")
        return f"Cancelled {job_type} {id}." if moved else f"{job_type} {id} had ended already."

    return Deed(f"Cancel this job of the type {job_type}?\n\n{id}", do)


def requeue(queue: Queue, id: UUID, job_type: str) -> Deed:
    async def do(_say: Say) -> str:
        moved = await queue.requeue([id])
        if moved:
            return f"Requeued {job_type} {id}, with one more attempt."
        return f"{job_type} {id} is neither failed nor cancelled: nothing was requeued."

    return Deed(f"Give this job of the type {job_type} one more attempt?\n\n{id}", do)


async def requeue_matching(queue: Queue, wanted: observe.Filter, what: str) -> Deed:
    """Requeue every job that a filter finds, page by page: each once, however fast it fails."""
    try:
        many = jobs(await observe.count(queue.store, wanted))
    except observe.TookTooLong:
        many = "all jobs"

    async def do(say: Say) -> str:
        moved, before, more = 0, None, True
        while more:
            page = await observe.page(queue.store, wanted, before=before, limit=PAGE)
            if page.jobs:
                moved += len(await queue.requeue([job.id for job in page.jobs]))
                say(f"Requeued {jobs(moved)} …")
            before = page.before
            more = before is not None
        return f"Requeued {jobs(moved)} {what}."

    return Deed(f"Give {many} {what} one more attempt each?", do)


async def requeue_type(queue: Queue, job_type: str) -> Deed:
    wanted = observe.Filter(status=(State.FAILED,), job_type=(job_type,))
    return await requeue_matching(queue, wanted, f"of the type {job_type} that failed")


async def requeue_group(queue: Queue, group: observe.FailureGroup) -> Deed:
    return await requeue_matching(
        queue, group.filter, f"of the type {group.job_type} that failed like this"
    )


async def pause_or_resume(queue: Queue, job_type: str) -> Deed:
    """Pause a type, or resume it where it is paused."""
    if job_type in await observe.paused(queue.store):

        async def resume(_say: Say) -> str:
            done = await queue.resume(job_type)
            return f"Resumed {job_type}." if done else f"{job_type} was not paused any more."

        return Deed(f"Resume {job_type}? Its jobs are claimed again.", resume)

    async def pause(_say: Say) -> str:
        done = await queue.pause(job_type)
        return f"Paused {job_type}." if done else f"{job_type} was paused already."

    return Deed(
        f"Pause {job_type}? Nobody claims its jobs until it is resumed; "
        "what is at work goes on to its end.",
        pause,
    )


def drain(queue: Queue, worker_id: str) -> Deed:
    async def do(_say: Say) -> str:
        if await observe.drain(queue.store, worker_id):
            return f"Asked {worker_id} to stop when its jobs have ended."
        return f"{worker_id} is not alive to hear it: nobody was asked to stop."

    return Deed(
        f"Drain the worker {worker_id}? It claims no more, lets its jobs end, and stops.", do
    )
