"""Actions: what a program can do to jobs, types and workers."""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType
from starlette.exceptions import HTTPException

from howdah import observe
from howdah.errors import JobNotFound
from howdah.job import OnConflict, Unique
from howdah.observe import Count
from howdah.web import actions, bulk
from howdah.web.actions import Action
from howdah.web.api.endpoint import Endpoints
from howdah.web.api.filters import JobFilter, Priority, Text
from howdah.web.api.queries import JobTypeName
from howdah.web.context import DashboardContext

endpoints: Endpoints = Endpoints()

THOUSAND_YEARS = 31_536_000_000  # seconds
WorkerName = Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000]*$")]
SignalName = Annotated[
    str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]*$")
]
Ids = Annotated[list[UUID], Meta(min_length=1, max_length=10_000)]


MAX_ATTEMPTS = 1000  # the default of the option max_attempts_limit


class JobAction(StrEnum):
    """An action on a job that needs no body."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    RUN_NOW = "run-now"
    DELETE = "delete"
    CLONE = "clone"


class ActionDone(msgspec.Struct, frozen=True, kw_only=True):
    """The job that was changed."""

    id: UUID
    clone_id: UUID | None = None  # the new job, if it was cloned


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """The jobs that were changed. The others do not exist, or their state does not allow it."""

    asked: int
    moved: list[UUID]
    clones: dict[UUID, UUID] = {}  # old id to new id, if they were cloned


class Enqueued(msgspec.Struct, frozen=True):
    """The job, and whether it existed before and has the unique key."""

    id: UUID
    existed: bool


class BulkStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The bulk job: watch its progress, or cancel it."""

    id: UUID
    matching: Count | None  # null: counting took too long


class Changed(msgspec.Struct, frozen=True):
    """Whether anything changed."""

    changed: bool


class NewPriority(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new priority of a job."""

    priority: Priority


class JobIds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs by their ids."""

    ids: Ids


class NewPriorityOfJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new priority of several jobs."""

    ids: Ids
    priority: Priority


class UniqueKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A unique key, and how long the job has it."""

    key: Annotated[str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000]*$")]
    until: Annotated[
        Literal["started", "ended"] | Annotated[float, Meta(ge=0.001, le=THOUSAND_YEARS)],
        Meta(description="Until it has started or ended, or so many seconds."),
    ] = "ended"
    on_conflict: Annotated[
        OnConflict, Meta(description="What to do with the job that has the key.")
    ] = "existing"

    def unique(self) -> Unique:
        if isinstance(self.until, str):
            return Unique(self.key, self.until, None, self.on_conflict)
        return Unique(self.key, None, timedelta(seconds=self.until), self.on_conflict)


class NewJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job to enqueue."""

    job_type: Annotated[JobTypeName, Meta(description="The prefix howdah. is reserved.")]
    data: Annotated[dict[str, Any], Meta(description="The payload: named arguments.")] = {}
    priority: Priority | UnsetType = UNSET
    delay: Annotated[
        float, Meta(ge=0, le=THOUSAND_YEARS, description="Seconds to wait before it may run.")
    ] = 0
    max_attempts: Annotated[int, Meta(ge=1, le=MAX_ATTEMPTS)] | UnsetType = UNSET
    expires: (
        Annotated[
            float,
            Meta(
                ge=0.001,
                le=THOUSAND_YEARS,
                description="Seconds after it is due: cancelled if not started by then.",
            ),
        ]
        | UnsetType
    ) = UNSET
    unique: (
        Annotated[UniqueKey, Meta(description="At most one job of the type has this key.")]
        | UnsetType
    ) = UNSET


class NewSignal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A signal to a job."""

    name: SignalName
    data: Annotated[Any, Meta(description="What ctx.wait_for returns: any JSON.")] = None


class Signalled(msgspec.Struct, frozen=True):
    """Whether the job waited for the signal and goes on; if not, the signal is kept for it."""

    waited: bool


class Pause(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reason of a pause."""

    reason: Annotated[Text, Meta(max_length=500)] | UnsetType = UNSET


class BulkAction(StrEnum):
    """An action on all matching jobs that needs no priority."""

    CANCEL = "cancel"
    REQUEUE = "requeue"
    RUN_NOW = "run-now"
    DELETE = "delete"


class MatchingJobs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Jobs by a filter; an empty filter means all jobs."""

    filter: JobFilter


class NewPriorityOfMatching(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The new priority of all jobs that match."""

    filter: JobFilter
    priority: Priority


@endpoints.post("/jobs", status=201, also=(409,))
async def enqueue(context: DashboardContext, who: str, body: NewJob) -> Enqueued:
    """Enqueue a job by the name of its type.

    If a job has its unique key, the answer is that job, with `existed` true.
    """
    return Enqueued(
        *await actions.enqueue(
            context,
            who,
            body.job_type,
            body.data,
            priority=None if body.priority is UNSET else body.priority,
            delay=timedelta(seconds=body.delay) if body.delay else None,
            max_attempts=None if body.max_attempts is UNSET else body.max_attempts,
            expires=None if body.expires is UNSET else timedelta(seconds=body.expires),
            unique=None if body.unique is UNSET else body.unique.unique(),
        )
    )


@endpoints.post("/jobs/{id}/reprioritise", also=(404, 409))
async def reprioritise_job(
    context: DashboardContext, who: str, id: UUID, body: NewPriority
) -> ActionDone:
    """Give a waiting job another priority."""
    return await _on_one(context, who, Action.REPRIORITISE, id, body.priority)


@endpoints.post("/jobs/{id}/signal", also=(404, 409))
async def signal_job(context: DashboardContext, who: str, id: UUID, body: NewSignal) -> Signalled:
    """Send a signal to a job that waits for it, or will. 409: the job has ended."""
    return Signalled(await actions.signal(context, who, id, body.name, body.data))


@endpoints.post("/jobs/{id}/{action}", also=(404, 409))
async def act_on_job(
    context: DashboardContext, who: str, id: UUID, action: JobAction
) -> ActionDone:
    """Cancel, requeue, run now, delete or clone a job.

    `cancel` ends a waiting or running job. `requeue` gives a failed or cancelled job one more
    attempt. `run-now` puts a scheduled job in line. `delete` deletes a finished job. `clone`
    enqueues a copy. 409: the state of the job does not allow the action.
    """
    return await _on_one(context, who, Action(action), id)


async def _on_one(
    context: DashboardContext, who: str, action: Action, id: UUID, priority: int | None = None
) -> ActionDone:
    moved = await actions.on_jobs(context, who, action, [id], priority)
    if id not in moved:
        life = await observe.job_history(context.store, id, events=0, within=context.within)
        raise HTTPException(409, actions.wrong_state_sentence(action, life.job.status))
    return ActionDone(id=id, clone_id=moved[id] if action is Action.CLONE else None)


def _declare_for_many(action: JobAction) -> None:
    async def act(context: DashboardContext, who: str, body: JobIds) -> Moved:
        return await _on_many(context, who, Action(action), body.ids)

    act.__doc__ = f"Do `{action}` to several jobs; /jobs/{{id}}/{{action}} says what it does."
    endpoints.post(f"/jobs/{action}", name=f"{action.name.lower()}_jobs")(act)


for _action in JobAction:
    _declare_for_many(_action)


@endpoints.post("/jobs/reprioritise")
async def reprioritise_jobs(context: DashboardContext, who: str, body: NewPriorityOfJobs) -> Moved:
    """Give several waiting jobs another priority."""
    return await _on_many(context, who, Action.REPRIORITISE, body.ids, body.priority)


async def _on_many(
    context: DashboardContext,
    who: str,
    action: Action,
    ids: list[UUID],
    priority: int | None = None,
) -> Moved:
    unique = list(dict.fromkeys(ids))
    moved = await actions.on_jobs(context, who, action, unique, priority)
    return Moved(
        asked=len(unique),
        moved=[id for id in unique if id in moved],
        clones=moved if action is Action.CLONE else {},
    )


@endpoints.post("/bulk/reprioritise", status=202, also=(404,))
async def reprioritise_all(
    context: DashboardContext, who: str, body: NewPriorityOfMatching
) -> BulkStarted:
    """Give all waiting jobs that match another priority, in the background."""
    return await _on_all(context, who, Action.REPRIORITISE, body.filter, body.priority)


@endpoints.post("/bulk/{action}", status=202)
async def act_on_all(
    context: DashboardContext, who: str, action: BulkAction, body: MatchingJobs
) -> BulkStarted:
    """Do an action to all jobs that match, in the background.

    A bulk job does it; the answer has its id. /jobs/{id} shows its progress, and at the end how
    many jobs were changed. Cancel the bulk job to stop it. It changes only jobs that exist now.
    """
    return await _on_all(context, who, Action(action), body.filter)


async def _on_all(
    context: DashboardContext,
    who: str,
    action: Action,
    job_filter: JobFilter,
    priority: int | None = None,
) -> BulkStarted:
    wanted = job_filter.filter(context.settings.redact)
    matching = await bulk.count(context, action, wanted)
    return BulkStarted(
        id=await bulk.start(context, who, action, wanted, priority), matching=matching
    )


@endpoints.post("/types/{job_type}/pause")
async def pause(context: DashboardContext, who: str, job_type: JobTypeName, body: Pause) -> Changed:
    """Let no worker claim jobs of a type. Running jobs are not stopped."""
    reason = None if body.reason is UNSET else body.reason
    return Changed(await actions.pause(context, who, job_type, reason))


@endpoints.post("/types/{job_type}/resume")
async def resume(context: DashboardContext, who: str, job_type: JobTypeName) -> Changed:
    """Let workers claim jobs of a paused type again."""
    return Changed(await actions.resume(context, who, job_type))


@endpoints.post("/workers/{worker_id}/drain", also=(404,))
async def drain(context: DashboardContext, who: str, worker_id: WorkerName) -> Changed:
    """Ask a worker to end its jobs and stop."""
    if not await actions.drain(context, who, worker_id):
        raise JobNotFound(f"there is no live worker {worker_id!r}: GET /workers lists them")
    return Changed(True)
