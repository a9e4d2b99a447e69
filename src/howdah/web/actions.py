"""Actions: what a person may do to a queue, one list for the pages and the API.

Comes after  desk.py
Comes before pages/, api/, bulk.py

The gate has already made sure that whoever asks may act. Every action leaves an audit line with who
did it, and says what it moved: a job that was not in a state for it stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from howdah import enqueue as room
from howdah import observe, payload
from howdah.client.queue import Queue
from howdah.errors import BadInput
from howdah.job import Draft
from howdah.observe.wording import jobs
from howdah.states import State
from howdah.web.desk import Desk

OURS = "howdah."  # job types that begin like this are ours
_exact = msgspec.json.Encoder(decimal_format="number")


class Action(StrEnum):
    """What can be done to jobs; the value is its name in a URL."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    RUN_NOW = "run-now"
    REPRIORITISE = "reprioritise"
    DELETE = "delete"
    CLONE = "clone"


_DONE = {
    Action.CANCEL: "cancelled",
    Action.REQUEUE: "put back in line",
    Action.RUN_NOW: "moved into line",
    Action.REPRIORITISE: "given another priority",
    Action.DELETE: "deleted",
    Action.CLONE: "cloned",
}


async def on_jobs(
    desk: Desk, who: str, action: Action, ids: Sequence[UUID], priority: int | None = None
) -> dict[UUID, UUID]:
    """Do something to jobs; returns those that it moved, and for a clone the new job."""
    moved = await move(desk.queue, who, action, ids, priority)
    on = str(ids[0]) if len(ids) == 1 else jobs(len(ids))
    facts = {} if priority is None else {"priority": priority}
    desk.note(who, action, on, moved=len(moved), **facts)
    return moved


async def move(
    queue: Queue, who: str, action: Action, ids: Sequence[UUID], priority: int | None = None
) -> dict[UUID, UUID]:
    """Do it, without an audit line of its own."""
    store = queue.store
    match action:
        case Action.CANCEL:
            moved = await queue.cancel(ids, f"cancelled by {who}")
        case Action.REQUEUE:
            moved = await queue.requeue(ids)
        case Action.RUN_NOW:
            moved = await observe.run_now(store, ids)
        case Action.DELETE:
            moved = await observe.delete(store, ids)
        case Action.CLONE:
            return await observe.clone(store, ids)
        case Action.REPRIORITISE:
            if priority is None:
                raise BadInput("say which priority the jobs shall have")
            moved = await observe.reprioritise(store, ids, priority)
    return {id: id for id in moved}


async def enqueue(
    desk: Desk,
    who: str,
    job_type: str,
    data: dict[str, Any],
    *,
    priority: int | None = None,
    delay: timedelta | None = None,
    max_attempts: int | None = None,
) -> UUID:
    """Hand over a job by the name of its type; returns its id.

    A Decimal in the payload is a number with more digits than a float can hold: it keeps them.
    """
    if job_type.startswith(OURS):
        raise BadInput(f"job types that begin with {OURS} are howdah's own")
    draft = _draft(desk.queue, job_type, data, priority, delay, max_attempts)
    await desk.queue.enqueue_many([draft])
    desk.note(who, "enqueue", str(draft.id), job_type=job_type)
    return draft.id


def _draft(
    queue: Queue,
    job_type: str,
    data: dict[str, Any],
    priority: int | None,
    delay: timedelta | None,
    max_attempts: int | None,
) -> Draft:
    text = _exact.encode(data).decode()
    if job_type in queue.handlers:  # whose function says what its numbers are
        return queue.draft(
            job_type,
            msgspec.json.decode(text),
            priority=priority,
            delay=delay,
            max_attempts=max_attempts,
        )
    payload.encode(data, f"the payload of {job_type!r}")  # refuses what cannot be kept
    return room.draft(
        job_type,
        text,
        priority=priority,
        delay=delay,
        max_attempts=max_attempts,
    )


async def pause(desk: Desk, who: str, job_type: str, reason: str | None = None) -> bool:
    """Let no worker claim jobs of a type; returns whether it was not paused before."""
    changed = await observe.pause(desk.store, job_type, reason, who)
    desk.note(who, "pause", job_type, changed=changed)
    return changed


async def resume(desk: Desk, who: str, job_type: str) -> bool:
    """Let jobs of a type be claimed again; returns whether it was paused."""
    changed = await observe.resume(desk.store, job_type)
    desk.note(who, "resume", job_type, changed=changed)
    return changed


async def drain(desk: Desk, who: str, worker_id: str) -> bool:
    """Ask a worker to end its jobs and leave; returns whether it is alive to hear it."""
    heard = await observe.drain(desk.store, worker_id)
    desk.note(who, "drain", worker_id, heard=heard)
    return heard


def told(action: Action, moved: int, asked: int) -> str:
    """Say what an action did, for people."""
    done = f"{jobs(moved)} {_DONE[action]}" if moved else f"No job was {_DONE[action]}"
    left = asked - moved
    if not left:
        return f"{done}."
    return f"{done}; {jobs(left)} {'was' if left == 1 else 'were'} not in a state for it."


def not_now(action: Action, status: State) -> str:
    """Say why an action did nothing to a job, for people."""
    return f"the job is {status}, so it cannot be {_DONE[action]}"
