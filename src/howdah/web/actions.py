"""Actions: what a user can do to a queue, for the pages and the API.

The auth middleware has already checked the user. Every action writes an audit line and returns what
it changed. A job whose state does not allow the action stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from howdah import enqueue as drafts
from howdah import payload
from howdah.admit import KeyRule, Limit, Rate
from howdah.checks.limit_names import unknown_limit
from howdah.client.queue import Queue
from howdah.errors import BadInput
from howdah.handler import check_job_type
from howdah.job import Draft, Unique
from howdah.states import State
from howdah.store import admit as store_admit
from howdah.store import schedules as store_schedules
from howdah.store import steer
from howdah.store.admit import Kept
from howdah.text.wording import jobs
from howdah.web.context import DashboardContext

RESERVED_PREFIX = "howdah."  # of howdah's own job types
MOST_OF_A_NAME = 200  # characters of who changed a limit
_encoder = msgspec.json.Encoder(decimal_format="number")


class Action(StrEnum):
    """An action on jobs; the value is its name in a URL."""

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
    context: DashboardContext,
    who: str,
    action: Action,
    ids: Sequence[UUID],
    priority: int | None = None,
) -> dict[UUID, UUID]:
    """Do an action to jobs; returns the jobs that changed, each with its clone or itself."""
    moved = await move(context.queue, who, action, ids, priority)
    on = str(ids[0]) if len(ids) == 1 else jobs(len(ids))
    facts = {} if priority is None else {"priority": priority}
    context.audit(who, action, on, moved=len(moved), **facts)
    return moved


async def move(
    queue: Queue, who: str, action: Action, ids: Sequence[UUID], priority: int | None = None
) -> dict[UUID, UUID]:
    """Do an action to jobs, without an audit line."""
    store = queue.store
    match action:
        case Action.CANCEL:
            moved = await queue.cancel(ids, f"cancelled by {who}")
        case Action.REQUEUE:
            moved = await queue.requeue(ids)
        case Action.RUN_NOW:
            moved = await steer.run_now(store, ids)
        case Action.DELETE:
            moved = await steer.delete(store, ids)
        case Action.CLONE:
            return await steer.clone(store, ids)
        case Action.REPRIORITISE:
            if priority is None:
                raise BadInput("no priority was given: say which priority the jobs get")
            moved = await steer.reprioritise(store, ids, priority)
    return {id: id for id in moved}


async def enqueue(
    context: DashboardContext,
    who: str,
    job_type: str,
    data: dict[str, Any],
    *,
    priority: int | None = None,
    delay: timedelta | None = None,
    max_attempts: int | None = None,
    expires: timedelta | None = None,
    unique: Unique | None = None,
) -> tuple[UUID, bool]:
    """Enqueue a job by the name of its type; returns its id, and whether it existed before.

    A number with more digits than a float can hold is a Decimal, so it keeps them.
    """
    if job_type.startswith(RESERVED_PREFIX):
        raise BadInput(
            f"job types that begin with {RESERVED_PREFIX} are reserved: choose another name"
        )
    options: dict[str, Any] = {
        "priority": priority,
        "delay": delay,
        "max_attempts": max_attempts,
        "expires": expires,
    }
    draft = _draft(context.queue, job_type, data, options)
    if unique is not None:
        draft = msgspec.structs.replace(draft, unique=unique)
    (handle,) = await context.queue.enqueue_many([draft], returning="handles")
    context.audit(who, "enqueue", str(handle.id), job_type=job_type)
    return handle.id, handle.existed


def _draft(queue: Queue, job_type: str, data: dict[str, Any], options: dict[str, Any]) -> Draft:
    text = _encoder.encode(data).decode()
    if job_type in queue.handlers:  # the handler knows the types of its arguments
        return queue.draft(job_type, msgspec.json.decode(text), **options)
    payload.encode(data, f"the payload of {job_type!r}")  # refuses what cannot be stored
    return drafts.draft(job_type, text, **options)


async def pause(
    context: DashboardContext, who: str, job_type: str, reason: str | None = None
) -> bool:
    """Pause a type; returns whether that changed anything."""
    changed = await steer.pause(context.store, job_type, reason, who)
    context.audit(who, "pause", job_type, changed=changed)
    return changed


async def resume(context: DashboardContext, who: str, job_type: str) -> bool:
    """Resume a type; returns whether that changed anything."""
    changed = await steer.resume(context.store, job_type)
    context.audit(who, "resume", job_type, changed=changed)
    return changed


async def set_limit(context: DashboardContext, who: str, limit: Limit) -> None:
    """Make or change a named limit."""
    await store_admit.set_limit(context.store, limit, who[:MOST_OF_A_NAME])
    _audit_limit(context, who, limit)


async def change_limit(
    context: DashboardContext,
    who: str,
    name: str,
    at_once: int | Kept | None,
    rate: Rate | Kept | None,
    per_key: bool | Kept,
) -> None:
    """Change some values of a named limit, or make it."""
    limit = await store_admit.change_limit(
        context.store, name, at_once, rate, per_key, who[:MOST_OF_A_NAME]
    )
    _audit_limit(context, who, limit)


def _audit_limit(context: DashboardContext, who: str, limit: Limit) -> None:
    values = {name: value for name, value in limit.row().items() if value is not None}
    del values["name"]
    context.audit(who, "set_limit", limit.name, **values)


async def remove_limit(context: DashboardContext, who: str, name: str) -> None:
    """Remove a named limit, also from the rules of types; raises UnknownLimit."""
    if not await store_admit.remove_limit(context.store, name):
        raise unknown_limit(name, await store_admit.limit_names(context.store))
    context.audit(who, "remove_limit", name)


async def set_type_limit(context: DashboardContext, who: str, job_type: str, rule: KeyRule) -> None:
    """Set the rule of a job type."""
    check_job_type(job_type)
    await store_admit.set_type_limit(context.store, job_type, rule, who[:MOST_OF_A_NAME])
    context.audit(
        who,
        "set_type_limit",
        job_type,
        at_once=rule.at_once,
        ordered=rule.ordered,
        fair=rule.fair,
        limit=rule.limit,
    )


async def clear_type_limit(context: DashboardContext, who: str, job_type: str) -> bool:
    """Remove the rule of a job type; returns whether it had one."""
    changed = await store_admit.clear_type_limit(context.store, job_type)
    context.audit(who, "clear_type_limit", job_type, changed=changed)
    return changed


async def signal(context: DashboardContext, who: str, id: UUID, name: str, data: Any) -> bool:
    """Send a signal to a job; returns whether it waited for it."""
    waited = await context.queue.signal(id, name, data)
    context.audit(who, "signal", str(id), name=name, waited=waited)
    return waited


async def pause_schedule(context: DashboardContext, who: str, name: str) -> bool:
    """Pause a schedule; returns whether that changed anything. Raises UnknownSchedule."""
    changed = await store_schedules.pause_schedule(context.store, name, who[:MOST_OF_A_NAME])
    context.audit(who, "pause_schedule", name, changed=changed)
    return changed


async def resume_schedule(context: DashboardContext, who: str, name: str) -> bool:
    """Resume a schedule; returns whether it was paused. Raises UnknownSchedule."""
    changed = await store_schedules.resume_schedule(context.store, name)
    context.audit(who, "resume_schedule", name, changed=changed)
    return changed


async def run_schedule_now(context: DashboardContext, who: str, name: str) -> UUID:
    """Enqueue a job of a schedule, and return its id. Raises UnknownSchedule."""
    id = await store_schedules.run_schedule_now(context.store, name)
    context.audit(who, "run_schedule_now", name, job=str(id))
    return id


async def drain(context: DashboardContext, who: str, worker_id: str) -> bool:
    """Ask a worker to end its jobs and stop; returns whether it is alive."""
    heard = await steer.drain(context.store, worker_id)
    context.audit(who, "drain", worker_id, heard=heard)
    return heard


def result_sentence(action: Action, moved: int, selected: int) -> str:
    """Describe the result of an action."""
    done = f"{jobs(moved)} {_DONE[action]}" if moved else f"No job was {_DONE[action]}"
    unchanged = selected - moved
    if not unchanged:
        return f"{done}."
    were = "was" if unchanged == 1 else "were"
    return f"{done}; {jobs(unchanged)} {were} in a state that does not allow it."


def wrong_state_sentence(action: Action, status: State) -> str:
    """Describe why an action did not change a job."""
    return f"the job is {status}, so it cannot be {_DONE[action]}"
