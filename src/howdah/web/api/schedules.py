"""Schedules: what fires when, and pause, resume and run now."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

import msgspec
from msgspec import Meta

from howdah import observe
from howdah.checks.schedule_names import UnknownSchedule, check_schedule_name
from howdah.errors import BadInput
from howdah.observe import Schedule, Upcoming
from howdah.states import State
from howdah.web import actions
from howdah.web.api.actions import Changed
from howdah.web.api.endpoint import Endpoints
from howdah.web.context import DashboardContext

endpoints: Endpoints = Endpoints()

ScheduleName = Annotated[
    str, Meta(min_length=1, max_length=200, pattern="^[^\\u0000-\\u001f\\u007f-\\u009f]*$")
]


class ScheduleNow(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule, without the payload of its jobs."""

    name: str
    job_type: str
    cron: str | None
    every: timedelta | None
    tz: str
    missed: str
    overlap: str
    state: Annotated[str, Meta(description="active, paused, orphaned or stopped.")]
    declared: Annotated[bool, Meta(description="Made by code; else by a person.")]
    late: Annotated[bool, Meta(description="It should have fired more than a minute ago.")]
    next_firing: datetime | None
    last_firing: datetime | None
    last_job_id: UUID | None
    last_status: State | None
    last_skipped: datetime | None
    problem: str | None
    changed_at: datetime
    changed_by: str


class AllSchedules(msgspec.Struct, frozen=True):
    """All schedules by name."""

    at: datetime
    schedules: list[ScheduleNow]


class NextFirings(msgspec.Struct, frozen=True):
    """The next firings, the next one first."""

    firings: list[Upcoming]


class UpcomingQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many firings to compute."""

    count: Annotated[int, Meta(ge=1, le=1000)] = 10


class Enqueued(msgspec.Struct, frozen=True):
    """The job that was enqueued."""

    id: UUID


@endpoints.get("/schedules")
async def schedules(context: DashboardContext) -> AllSchedules:
    """All schedules, with their next and last firings and what became of the last job."""
    found = await observe.schedules_now(context.store, within=context.within)
    return AllSchedules(found.at, [_now(each) for each in found.schedules])


@endpoints.get("/upcoming-firings")
async def upcoming_firings(context: DashboardContext, query: UpcomingQuery) -> NextFirings:
    """The next firings of all schedules."""
    return NextFirings(await observe.upcoming(context.store, query.count, within=context.within))


@endpoints.get("/schedules/{schedule}")
async def schedule(context: DashboardContext, schedule: ScheduleName) -> ScheduleNow:
    """One schedule. A slash in its name is written %2F."""
    _refuse_name(schedule)
    return _now(await observe.schedule(context.store, schedule, within=context.within))


@endpoints.post("/schedules/{schedule}/pause")
async def pause_schedule(context: DashboardContext, who: str, schedule: ScheduleName) -> Changed:
    """Pause a schedule: it does not fire until somebody resumes it."""
    _refuse_name(schedule)
    return Changed(await actions.pause_schedule(context, who, schedule))


@endpoints.post("/schedules/{schedule}/resume")
async def resume_schedule(context: DashboardContext, who: str, schedule: ScheduleName) -> Changed:
    """Resume a schedule: it fires again, from now on."""
    _refuse_name(schedule)
    return Changed(await actions.resume_schedule(context, who, schedule))


@endpoints.post("/schedules/{schedule}/run-now")
async def run_schedule_now(context: DashboardContext, who: str, schedule: ScheduleName) -> Enqueued:
    """Enqueue a job of a schedule at once; its next firing stays."""
    _refuse_name(schedule)
    return Enqueued(await actions.run_schedule_now(context, who, schedule))


def _refuse_name(name: str) -> None:
    """Answer 404 for a name that no schedule can have."""
    try:
        check_schedule_name(name)
    except BadInput as error:
        raise UnknownSchedule(str(error)) from None


def _now(of: Schedule) -> ScheduleNow:
    return ScheduleNow(**{name: getattr(of, name) for name in ScheduleNow.__struct_fields__})
