"""Looks: questions about the queue as a whole, its types and its workers."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from howdah import observe
from howdah.errors import JobNotFound
from howdah.observe import Failures, Level, OverTime, Overview, Range, TypeNow, Why, WorkerNow
from howdah.web.api.call import Calls
from howdah.web.api.which import Text
from howdah.web.desk import Desk

calls: Calls = Calls()

Word = Literal["fine", "unknown", "warning", "critical"]
JobTypeName = Annotated[
    str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]*$")
]


class ProblemSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Something to look at."""

    kind: str
    level: Word
    sentence: str
    advice: str
    job_type: str | None
    worker_id: str | None


class Problems(msgspec.Struct, frozen=True):
    """What a person should look at, worst first."""

    problems: list[ProblemSeen]


class Types(msgspec.Struct, frozen=True, kw_only=True):
    """Every job type."""

    at: datetime
    types: list[TypeNow]
    late: list[str]  # parts that took too long and are missing


class Workers(msgspec.Struct, frozen=True):
    """The workers, the living first."""

    workers: list[WorkerNow]


class CheckSeen(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of the doctor's."""

    name: str
    level: Word
    sentence: str
    advice: str
    value: float | None
    unit: str


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Every check, worst first."""

    level: Word
    checks: list[CheckSeen]


class WhichFailures(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Failures of one type, or of all."""

    job_type: Text | UnsetType = UNSET


class WhichRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far back."""

    range: Annotated[
        Literal["hour", "day", "week"],
        Meta(description="An hour by the minute, a day by 15 minutes, a week by 2 hours."),
    ] = "hour"


@calls.get("/overview")
async def overview(desk: Desk) -> Overview:
    """Every job type at a glance, with the trend of the last hour.

    Waiting jobs are counted exactly up to 10,000; `more` says that there are more. A part that took
    the database too long is missing, and named in `late`.
    """
    return await observe.overview(desk.store, within=desk.within)


@calls.get("/problems")
async def problems(desk: Desk) -> Problems:
    """What a person should look at, worst first."""
    found = await observe.problems(desk.store, within=desk.within)
    return Problems(
        [
            ProblemSeen(
                kind=one.kind,
                level=_word(one.level),
                sentence=one.sentence,
                advice=one.advice,
                job_type=one.job_type,
                worker_id=one.worker_id,
            )
            for one in found
        ]
    )


@calls.get("/types")
async def types(desk: Desk) -> Types:
    """Every job type."""
    seen = await observe.overview(desk.store, within=desk.within)
    return Types(at=seen.at, types=seen.types, late=seen.late)


@calls.get("/types/{job_type}", also=(404,))
async def type_now(desk: Desk, job_type: JobTypeName) -> TypeNow:
    """One job type. A slash in its name is written %2F."""
    seen = await observe.overview(desk.store, within=desk.within)
    for one in seen.types:
        if one.job_type == job_type:
            return one
    raise JobNotFound(f"there is no job, no worker and no pause of the type {job_type!r}")


@calls.get("/types/{job_type}/why")
async def why_type(desk: Desk, job_type: JobTypeName) -> Why:
    """Why jobs of a type wait: told of the first in its line."""
    return await observe.why_type(desk.store, job_type, within=desk.within)


@calls.get("/measures")
async def measures(desk: Desk, query: WhichRange) -> OverTime:
    """All types together over time: what the charts of the overview show.

    Counts are of a whole point: divide by its `minutes`, in which a worker was there, for a rate.
    Null: no worker was there, or the minute is not added up yet. `waiting` is the most that was
    counted at once, of one count a minute; null: nobody counted.
    """
    return await observe.over_time(desk.store, Range(query.range), within=desk.within)


@calls.get("/types/{job_type}/measures")
async def measures_of_type(desk: Desk, job_type: JobTypeName, query: WhichRange) -> OverTime:
    """One type over time, told like /measures. A type that nobody measured has zeros."""
    return await observe.over_time(desk.store, Range(query.range), job_type, within=desk.within)


@calls.get("/failures")
async def failures(desk: Desk, query: WhichFailures) -> Failures:
    """The newest failed jobs, the same errors together. A fingerprint finds the jobs of a group."""
    job_type = None if query.job_type is UNSET else query.job_type
    return await observe.failures(desk.store, job_type, within=desk.within)


@calls.get("/workers")
async def workers(desk: Desk) -> Workers:
    """The workers, and what each runs now."""
    return Workers(await observe.crew(desk.store, within=desk.within))


@calls.get("/health")
async def health(desk: Desk) -> Health:
    """What is wrong with a PostgreSQL queue: the same as `howdah doctor`."""
    found = await observe.examine(desk.store, within=desk.within)
    return Health(
        level=_word(found.level),
        checks=[
            CheckSeen(
                name=one.name,
                level=_word(one.level),
                sentence=one.sentence,
                advice=one.advice,
                value=one.value,
                unit=one.unit,
            )
            for one in found.checks
        ],
    )


def _word(level: Level) -> Word:
    words: dict[Level, Word] = {
        Level.FINE: "fine",
        Level.UNKNOWN: "unknown",
        Level.WARNING: "warning",
        Level.CRITICAL: "critical",
    }
    return words[level]
