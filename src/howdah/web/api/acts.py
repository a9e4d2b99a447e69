"""Acts: what can be done, to one job, to some, to all that match, to a type, to a worker."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.exceptions import HTTPException

from howdah import observe
from howdah.errors import JobNotFound
from howdah.observe import Count
from howdah.web import actions, bulk
from howdah.web.actions import Action
from howdah.web.api.call import Calls
from howdah.web.api.looks import JobTypeName
from howdah.web.api.which import Priority, Text, Which
from howdah.web.desk import Desk

calls: Calls = Calls()

THOUSAND_YEARS = 31_536_000_000  # seconds
WorkerName = Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000]*$")]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=10_000)]


MOST_ATTEMPTS = 1000  # the option max_attempts_limit, as it is installed


class Plain(StrEnum):
    """What can be done to a job without saying more."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    RUN_NOW = "run-now"
    DELETE = "delete"
    CLONE = "clone"


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It was done to this job."""

    id: UUID
    clone_id: UUID | None = None  # the new job, where it was cloned


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """Which jobs it was done to; the others were not in a state for it, or do not exist."""

    asked: int
    moved: list[UUID]
    clones: dict[UUID, UUID] = {}  # the new job by the old one, where they were cloned


class Enqueued(msgspec.Struct, frozen=True):
    """The job that was handed over."""

    id: UUID


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """The job that does it: look at its progress, or cancel it."""

    id: UUID
    matching: Count | None  # null: they could not be counted in time


class Changed(msgspec.Struct, frozen=True):
    """Whether it was not so before."""

    changed: bool


class NewPriority(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The priority that a job shall have."""

    priority: Priority


class TheseJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs by their ids."""

    ids: Ids


class NewPriorityOfJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The priority that jobs shall have."""

    ids: Ids
    priority: Priority


class NewJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to be handed over."""

    job_type: Annotated[JobTypeName, Meta(description="The names howdah.* are taken.")]
    data: Annotated[dict[str, Any], Meta(description="The payload: named arguments.")] = {}
    priority: Priority | UnsetType = UNSET
    delay: Annotated[
        float, Meta(ge=0, le=THOUSAND_YEARS, description="Not before so many seconds from now.")
    ] = 0
    max_attempts: Annotated[int, Meta(ge=1, le=MOST_ATTEMPTS)] | UnsetType = UNSET


class Pause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a type is paused, for people to read."""

    reason: Annotated[Text, Meta(max_length=500)] | UnsetType = UNSET


class ToAll(StrEnum):
    """What can be done to all jobs that match without saying more."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    RUN_NOW = "run-now"
    DELETE = "delete"


class AllThatMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs by a filter; an empty one means all."""

    filter: Which


class NewPriorityOfAll(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The priority that all jobs that match shall have."""

    filter: Which
    priority: Priority


@calls.post("/jobs", status=201)
async def enqueue(desk: Desk, who: str, body: NewJob) -> Enqueued:
    """Hand over a job by the name of its type."""
    return Enqueued(
        await actions.enqueue(
            desk,
            who,
            body.job_type,
            body.data,
            priority=None if body.priority is UNSET else body.priority,
            delay=timedelta(seconds=body.delay) if body.delay else None,
            max_attempts=None if body.max_attempts is UNSET else body.max_attempts,
        )
    )


@calls.post("/jobs/{id}/reprioritise", also=(404, 409))
async def reprioritise_job(desk: Desk, who: str, id: UUID, body: NewPriority) -> Done:
    """Give a waiting job another priority."""
    return await _on_one(desk, who, Action.REPRIORITISE, id, body.priority)


@calls.post("/jobs/{id}/{action}", also=(404, 409))
async def act_on_job(desk: Desk, who: str, id: UUID, action: Plain) -> Done:
    """Cancel, requeue, run now, delete or clone a job.

    `cancel` ends a job that waits or runs; `requeue` gives a failed or cancelled one another
    attempt; `run-now` lets one that waits for its time join the line; `delete` forgets one that has
    ended; `clone` hands over a new job like it. 409: the job is not in a state for it.
    """
    return await _on_one(desk, who, Action(action), id)


async def _on_one(
    desk: Desk, who: str, action: Action, id: UUID, priority: int | None = None
) -> Done:
    moved = await actions.on_jobs(desk, who, action, [id], priority)
    if id not in moved:
        found = await observe.life(desk.store, id, events=0, within=desk.within)
        raise HTTPException(409, actions.not_now(action, found.job.status))
    return Done(id=id, clone_id=moved[id] if action is Action.CLONE else None)


def _declare_for_many(action: Plain) -> None:
    async def act(desk: Desk, who: str, body: TheseJobs) -> Moved:
        return await _on_many(desk, who, Action(action), body.ids)

    act.__doc__ = f"Do `{action}` to some jobs; see /jobs/{{id}}/{{action}} for what it does."
    calls.post(f"/jobs/{action}", name=f"{action.name.lower()}_jobs")(act)


for _action in Plain:
    _declare_for_many(_action)


@calls.post("/jobs/reprioritise")
async def reprioritise_jobs(desk: Desk, who: str, body: NewPriorityOfJobs) -> Moved:
    """Give some waiting jobs another priority."""
    return await _on_many(desk, who, Action.REPRIORITISE, body.ids, body.priority)


async def _on_many(
    desk: Desk, who: str, action: Action, ids: list[UUID], priority: int | None = None
) -> Moved:
    asked = list(dict.fromkeys(ids))
    moved = await actions.on_jobs(desk, who, action, asked, priority)
    return Moved(
        asked=len(asked),
        moved=[id for id in asked if id in moved],
        clones=moved if action is Action.CLONE else {},
    )


@calls.post("/bulk/reprioritise", status=202)
async def reprioritise_all(desk: Desk, who: str, body: NewPriorityOfAll) -> Started:
    """Give all waiting jobs that match another priority, in the background."""
    return await _on_all(desk, who, Action.REPRIORITISE, body.filter, body.priority)


@calls.post("/bulk/{action}", status=202)
async def act_on_all(desk: Desk, who: str, action: ToAll, body: AllThatMatch) -> Started:
    """Do something to all jobs that match, in the background.

    It is done by a job of its own, whose id is answered: /jobs/{id} tells its progress and at the
    end how many jobs were moved; cancel it to stop it. Only jobs that exist already are moved.
    """
    return await _on_all(desk, who, Action(action), body.filter)


async def _on_all(
    desk: Desk, who: str, action: Action, which: Which, priority: int | None = None
) -> Started:
    wanted = which.filter(desk.settings.redact)
    matching = await bulk.count(desk, action, wanted)
    return Started(id=await bulk.start(desk, who, action, wanted, priority), matching=matching)


@calls.post("/types/{job_type}/pause")
async def pause(desk: Desk, who: str, job_type: JobTypeName, body: Pause) -> Changed:
    """Let no worker claim jobs of a type; what runs goes on to its end."""
    reason = None if body.reason is UNSET else body.reason
    return Changed(await actions.pause(desk, who, job_type, reason))


@calls.post("/types/{job_type}/resume")
async def resume(desk: Desk, who: str, job_type: JobTypeName) -> Changed:
    """Let jobs of a paused type be claimed again."""
    return Changed(await actions.resume(desk, who, job_type))


@calls.post("/workers/{worker_id}/drain", also=(404,))
async def drain(desk: Desk, who: str, worker_id: WorkerName) -> Changed:
    """Ask a worker to end its jobs and leave."""
    if not await actions.drain(desk, who, worker_id):
        raise JobNotFound(f"there is no live worker {worker_id!r} to hear it")
    return Changed(True)
