"""Jobs: queries about jobs."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw

from howdah import observe
from howdah.observe import Count, Page, Span, Summary, Why
from howdah.observe.raw import SHOWN_EVENTS, RawEvent, raw_events, raw_job
from howdah.web.api.endpoint import Endpoints
from howdah.web.api.filters import MAX_INT4, JobFilter, JobPageQuery
from howdah.web.api.json_encoding import redacted_json
from howdah.web.context import DashboardContext
from howdah.web.redact import hidden_key, hidden_limit, redacted, without_keys

endpoints: Endpoints = Endpoints()

AnyJson = Annotated[Raw, Meta(description="Any JSON; numbers keep all their digits.")]


class JobDetail(Summary, frozen=True, kw_only=True):
    """A job with its payload, result and errors."""

    # this, `key` and the key in `limited_by` are hidden where keys of payloads are redacted
    unique_key: str | None
    admission: str | None  # which slots of its key and its limit it has
    arrival: int | None  # its number in the order of enqueueing
    data: AnyJson
    result: AnyJson
    errors: list[Any]  # one per failed attempt


class EventDetail(msgspec.Struct, frozen=True, kw_only=True):
    """An event that a job emitted."""

    number: int
    kind: str
    data: AnyJson
    attempt: int
    created_at: datetime


class JobHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its waits and attempts in order, and its last events."""

    job: JobDetail
    at: datetime  # the server's time of the query
    ready_at: datetime | None  # since when it is in line
    waited: timedelta
    ran: timedelta
    spans: list[Span]
    events: list[EventDetail]


class Events(msgspec.Struct, frozen=True):
    """Events of a job, in order."""

    events: list[EventDetail]


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events after a number."""

    after: Annotated[
        int, Meta(ge=0, le=MAX_INT4, description="The number of the last event that you have.")
    ] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


@endpoints.get("/jobs", also=(404,))
async def jobs(context: DashboardContext, query: JobPageQuery) -> Page:
    """Jobs that match, newest first, page by page.

    Send `before` of an answer to get the next page; null: there is none. A page scans at most
    20,000 jobs, so a page that is not the last may be empty (`exhausted`).
    """
    keys = context.settings.redact
    page = await observe.page(
        context.store,
        query.filter(keys),
        before=None if query.before is UNSET else query.before,
        limit=query.limit,
        within=context.within,
    )
    return msgspec.structs.replace(page, jobs=[without_keys(job, keys) for job in page.jobs])


@endpoints.get("/jobs/count", also=(404,))
async def count(context: DashboardContext, query: JobFilter) -> Count:
    """The number of jobs that match. `more`: there are more than were counted."""
    wanted = query.filter(context.settings.redact)
    return await observe.count(context.store, wanted, within=context.within)


@endpoints.get("/jobs/{id}", also=(404,))
async def job(context: DashboardContext, id: UUID) -> JobHistory:
    """One job: its waits and attempts in order, and the last events."""
    history = await observe.job_history(context.store, id, events=0, within=context.within)
    text = await raw_job(context.store, id, events=0, within=context.within)
    keys = context.settings.redact
    last = max(0, history.job.events_count - SHOWN_EVENTS)
    events = await raw_events(
        context.store, id, after=last, limit=SHOWN_EVENTS, within=context.within
    )
    fields = {name: getattr(history.job, name) for name in JobDetail.__struct_fields__}
    fields |= {"data": redacted_json(text.data, keys), "result": redacted_json(text.result, keys)}
    fields["unique_key"] = hidden_key(history.job.unique_key, keys)
    fields["key"] = hidden_key(history.job.key, keys)
    fields["limited_by"] = hidden_limit(history.job.limited_by, keys)
    fields["errors"] = redacted(history.job.errors, keys)
    return JobHistory(
        job=JobDetail(**fields),
        at=history.at,
        ready_at=history.ready_at,
        waited=history.waited,
        ran=history.ran,
        spans=history.spans,
        events=[_event(event, keys) for event in events],
    )


@endpoints.get("/jobs/{id}/events", also=(404,))
async def events(context: DashboardContext, id: UUID, query: EventsQuery) -> Events:
    """The events of a job after a number. Repeat it with the last number to follow the job."""
    texts = await raw_events(
        context.store, id, after=query.after, limit=query.limit, within=context.within
    )
    return Events([_event(text, context.settings.redact) for text in texts])


@endpoints.get("/jobs/{id}/why", also=(404,))
async def why(context: DashboardContext, id: UUID) -> Why:
    """Why a job is in its state, as a sentence and as a code."""
    return await observe.why(context.store, id, within=context.within, key_as=context.key_as)


def _event(event: RawEvent, keys: frozenset[str]) -> EventDetail:
    return EventDetail(
        number=event.number,
        kind=event.kind,
        data=redacted_json(event.data, keys),
        attempt=event.attempt,
        created_at=event.created_at,
    )
