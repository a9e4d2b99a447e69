"""Queries: the queue as a whole, its types and its workers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from howdah import observe
from howdah.errors import JobNotFound
from howdah.observe import (
    Failures,
    KeyCounts,
    Level,
    OverTime,
    Overview,
    Range,
    TypeNow,
    Why,
    WorkerNow,
)
from howdah.web.api.endpoint import Endpoints
from howdah.web.api.filters import Text
from howdah.web.context import DashboardContext
from howdah.web.redact import shown_keys

endpoints: Endpoints = Endpoints()

LevelName = Literal["fine", "unknown", "warning", "critical"]
JobTypeName = Annotated[
    str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]*$")
]


class ProblemDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A problem that needs attention."""

    kind: str
    level: LevelName
    sentence: str
    advice: str
    job_type: str | None
    worker_id: str | None


class Problems(msgspec.Struct, frozen=True):
    """The problems that need attention, worst first."""

    problems: list[ProblemDetail]


class Types(msgspec.Struct, frozen=True, kw_only=True):
    """Every job type."""

    at: datetime
    types: list[TypeNow]
    late: list[str]  # parts that are missing because they took too long


class Workers(msgspec.Struct, frozen=True):
    """The workers, live ones first."""

    workers: list[WorkerNow]


class CheckDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One check of `howdah doctor`."""

    name: str
    level: LevelName
    sentence: str
    advice: str
    value: float | None
    unit: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Every check, worst first."""

    level: LevelName
    checks: list[CheckDetail]


class FailuresQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job type; all types if it is left out."""

    job_type: Text | UnsetType = UNSET


class TypesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Queues; all types if they are left out."""

    queue: Annotated[list[Text], Meta(description="The queue of the type.")] = []


class KeysQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many keys."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 20


class RangeQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A range of time."""

    range: Annotated[
        Literal["hour", "day", "week"],
        Meta(description="A point is a minute, 15 minutes or 2 hours."),
    ] = "hour"


@endpoints.get("/overview")
async def overview(context: DashboardContext) -> Overview:
    """The state of every job type, with the trend of the last hour.

    Waiting jobs are counted exactly up to 10,000; `more` says that there are more. `late` names the
    parts that are missing because they took too long.
    """
    return await observe.overview(context.store, within=context.within)


@endpoints.get("/problems")
async def problems(context: DashboardContext) -> Problems:
    """The problems that need attention, worst first."""
    problems = await observe.problems(context.store, within=context.within)
    return Problems(
        [
            ProblemDetail(
                kind=problem.kind,
                level=_level_name(problem.level),
                sentence=problem.sentence,
                advice=problem.advice,
                job_type=problem.job_type,
                worker_id=problem.worker_id,
            )
            for problem in problems
        ]
    )


@endpoints.get("/types", also=(404,))
async def types(context: DashboardContext, query: TypesQuery) -> Types:
    """Every job type, or those of some queues."""
    await observe.check_queues(context.store, query.queue, within=context.within)
    overview = await observe.overview(context.store, within=context.within)
    types = [type for type in overview.types if not query.queue or type.queue in query.queue]
    return Types(at=overview.at, types=types, late=overview.late)


@endpoints.get("/types/{job_type}", also=(404,))
async def type_now(context: DashboardContext, job_type: JobTypeName) -> TypeNow:
    """One job type. A slash in its name is written %2F."""
    overview = await observe.overview(context.store, within=context.within)
    for type in overview.types:
        if type.job_type == job_type:
            return type
    raise JobNotFound(f"the type {job_type!r} is unknown: GET /types lists all types")


@endpoints.get("/types/{job_type}/why")
async def why_type(context: DashboardContext, job_type: JobTypeName) -> Why:
    """Why the first waiting job of a type does not run."""
    return await observe.why_type(
        context.store, job_type, within=context.within, key_as=context.key_as
    )


@endpoints.get("/types/{job_type}/keys")
async def keys(context: DashboardContext, job_type: JobTypeName, query: KeysQuery) -> KeyCounts:
    """How many jobs of a type hold a slot of their concurrency key or wait for one, by key.

    The keys for which most jobs wait come first. `more`: there are more keys with jobs.
    `exhausted`: the type has so many keys that not all were compared, but the first ones by their
    names, and those that are most frequent in a sample.
    Keys are hidden where keys of payloads are redacted.
    """
    counted = await observe.key_counts(
        context.store, job_type, limit=query.limit, within=context.within
    )
    return shown_keys(counted, context.settings.redact)


@endpoints.get("/measures")
async def measures(context: DashboardContext, query: RangeQuery) -> OverTime:
    """All types together over time: the data of the overview's charts.

    Counts are totals of a point. Divide by its `minutes`, in which a worker was running, to get a
    rate. Null: no worker was running, or the minute is not added up yet. `waiting` is the highest
    of the counts that are made once a minute; null: nothing was counted.
    """
    return await observe.over_time(context.store, Range(query.range), within=context.within)


@endpoints.get("/types/{job_type}/measures")
async def measures_of_type(
    context: DashboardContext, job_type: JobTypeName, query: RangeQuery
) -> OverTime:
    """One type over time, like /measures. A type without measures has zeros."""
    return await observe.over_time(
        context.store, Range(query.range), job_type, within=context.within
    )


@endpoints.get("/failures")
async def failures(context: DashboardContext, query: FailuresQuery) -> Failures:
    """The newest failed jobs, grouped by error. Filter jobs by the fingerprint of a group."""
    job_type = None if query.job_type is UNSET else query.job_type
    return await observe.failures(context.store, job_type, within=context.within)


@endpoints.get("/workers")
async def workers(context: DashboardContext) -> Workers:
    """The workers, and the jobs that each runs now."""
    return Workers(await observe.workers(context.store, within=context.within))


@endpoints.get("/health")
async def health(context: DashboardContext) -> Health:
    """The checks of `howdah doctor`."""
    diagnosis = await observe.examine(context.store, within=context.within)
    return Health(
        level=_level_name(diagnosis.level),
        checks=[
            CheckDetail(
                name=check.name,
                level=_level_name(check.level),
                sentence=check.sentence,
                advice=check.advice,
                value=check.value,
                unit=check.unit,
            )
            for check in diagnosis.checks
        ],
    )


def _level_name(level: Level) -> LevelName:
    names: dict[Level, LevelName] = {
        Level.FINE: "fine",
        Level.UNKNOWN: "unknown",
        Level.WARNING: "warning",
        Level.CRITICAL: "critical",
    }
    return names[level]
