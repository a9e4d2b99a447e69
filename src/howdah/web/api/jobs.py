"""Jobs: questions about jobs, many or one."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw

from howdah import observe
from howdah.observe import Count, Page, Span, Summary, Why
from howdah.observe.emitted import EmittedText, emitted
from howdah.observe.exact import exact
from howdah.observe.history import EVENTS
from howdah.web.api.call import Calls
from howdah.web.api.which import LARGEST, Which, WhichPage
from howdah.web.api.written import shown
from howdah.web.desk import Desk
from howdah.web.redact import redacted

calls: Calls = Calls()

AnyJson = Annotated[Raw, Meta(description="Any JSON; numbers have all their digits.")]


class JobSeen(Summary, frozen=True, kw_only=True):
    """A job with everything that belongs to it."""

    data: AnyJson
    result: AnyJson
    errors: list[Any]  # one entry per attempt that went wrong


class EventSeen(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a job emitted."""

    number: int
    kind: str
    data: AnyJson
    attempt: int
    created_at: datetime


class JobLife(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its life in order, and what it emitted last."""

    job: JobSeen
    at: datetime  # the server's clock when it was read
    ready_at: datetime | None  # since when it stands in line
    waited: timedelta
    ran: timedelta
    spans: list[Span]
    events: list[EventSeen]


class Events(msgspec.Struct, frozen=True):
    """Events of a job, in order."""

    events: list[EventSeen]


class WhichEvents(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events from a number on."""

    after: Annotated[
        int, Meta(ge=0, le=LARGEST, description="The number of the last event that was seen.")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


@calls.get("/jobs")
async def jobs(desk: Desk, query: WhichPage) -> Page:
    """Jobs that match, newest first, page by page.

    `before` of an answer begins the next page; null: there is none. A page looks at 20,000 jobs at
    most, so it may be empty (`exhausted`) and not the last.
    """
    return await observe.page(
        desk.store,
        query.filter(desk.settings.redact),
        before=None if query.before is UNSET else query.before,
        limit=query.limit,
        within=desk.within,
    )


@calls.get("/jobs/count")
async def count(desk: Desk, query: Which) -> Count:
    """How many jobs match. `more`: there are more than was counted."""
    wanted = query.filter(desk.settings.redact)
    return await observe.count(desk.store, wanted, within=desk.within)


@calls.get("/jobs/{id}", also=(404,))
async def job(desk: Desk, id: UUID) -> JobLife:
    """One job: its waits and attempts in order, and the last events."""
    life = await observe.life(desk.store, id, events=0, within=desk.within)
    text = await exact(desk.store, id, events=0, within=desk.within)
    keys = desk.settings.redact
    last = max(0, life.job.events_count - EVENTS)
    events = await emitted(desk.store, id, after=last, limit=EVENTS, within=desk.within)
    known = {name: getattr(life.job, name) for name in JobSeen.__struct_fields__}
    known |= {"data": shown(text.data, keys), "result": shown(text.result, keys)}
    known["errors"] = redacted(life.job.errors, keys)
    return JobLife(
        job=JobSeen(**known),
        at=life.at,
        ready_at=life.ready_at,
        waited=life.waited,
        ran=life.ran,
        spans=life.spans,
        events=[_event(one, keys) for one in events],
    )


@calls.get("/jobs/{id}/events", also=(404,))
async def events(desk: Desk, id: UUID, query: WhichEvents) -> Events:
    """The events of a job above a number: ask again with the last number to follow it."""
    found = await emitted(desk.store, id, after=query.after, limit=query.limit, within=desk.within)
    return Events([_event(one, desk.settings.redact) for one in found])


@calls.get("/jobs/{id}/why", also=(404,))
async def why(desk: Desk, id: UUID) -> Why:
    """Why a job is where it is, in a sentence and in a word."""
    return await observe.why(desk.store, id, within=desk.within)


def _event(one: EmittedText, keys: frozenset[str]) -> EventSeen:
    return EventSeen(
        number=one.number,
        kind=one.kind,
        data=shown(one.data, keys),
        attempt=one.attempt,
        created_at=one.created_at,
    )
