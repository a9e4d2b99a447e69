"""Job history: one job from its enqueue to its end, as a timeline.

The row has the instant of the enqueue, each attempt that failed, and the last attempt. The time
between them is waiting. The row of a job that failed very often keeps only its last errors, so
the timeline begins with them.
"""

from __future__ import annotations

from collections.abc import Generator
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from howdah import payload
from howdah.errors import JobNotFound
from howdah.events import Emitted
from howdah.job import Job
from howdah.observe.raw import EVENTS_AFTER, MOST_EVENTS, SHOWN_EVENTS
from howdah.states import State
from howdah.store import Store, query
from howdah.store.rows import JOB_COLUMNS, job_from
from howdah.waits_for import WaitsFor


class Kind(StrEnum):
    """What a job does during a span."""

    SCHEDULED = "scheduled"  # waits until it is due, for the first time or for a retry
    LIMITED = "limited"  # waits for a slot of its key, or for its limit
    WAITING = "waiting"  # stands in line
    CLAIMED = "claimed"  # held by a worker, not started
    RUNNING = "running"


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a job's history."""

    kind: Kind
    began: datetime
    ended: datetime | None  # None: it has not ended
    attempt: int | None = None
    worker_id: str | None = None
    outcome: str | None = None  # of an attempt: completed, failed, cancelled, retried
    error: str | None = None
    traceback: str | None = None


class JobHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its spans in order, and its last events."""

    job: Job
    at: datetime  # the server's clock when it was read
    ready_at: datetime | None  # when it joined the line
    spans: list[Span]
    events: list[Emitted]  # the last ones, in order

    @property
    def waited(self) -> timedelta:
        """How long it stood in line, in total."""
        return self._sum(Kind.WAITING)

    @property
    def ran(self) -> timedelta:
        """How long it ran, in total."""
        return self._sum(Kind.RUNNING)

    def _sum(self, kind: Kind) -> timedelta:
        spans = (span for span in self.spans if span.kind is kind)
        return sum(((span.ended or self.at) - span.began for span in spans), timedelta())


async def job_history(
    store: Store, id: UUID, *, events: int = SHOWN_EVENTS, within: timedelta = query.WITHIN
) -> JobHistory:
    """Read one job with its timeline and its last events; raises JobNotFound."""
    rows = await query.fetch(
        store,
        within,
        f"select {JOB_COLUMNS}, ready_at, howdah.clock() from howdah.jobs_by_id(array[$1::uuid])",  # noqa: S608
        id,
    )
    if not rows:
        raise JobNotFound.with_id(id)
    values = dict(rows[0])
    now, ready_at = values.pop("clock"), values.pop("ready_at")
    job = job_from(values)
    last = await query.fetch(
        store, within, EVENTS_AFTER, id, max(0, job.events_count - events), events
    )
    return JobHistory(
        job=job,
        at=now,
        ready_at=ready_at,
        spans=list(spans(job, ready_at)),
        events=[_event(*row) for row in last],
    )


async def events_after(
    store: Store, id: UUID, after: int, limit: int = MOST_EVENTS
) -> list[Emitted]:
    """Read a job's events after a number, in order."""
    return [_event(*row) for row in await store.fetch(EVENTS_AFTER, id, after, limit)]


def _event(number: int, kind: str, data: str | None, attempt: int, at: datetime) -> Emitted:
    return Emitted(number, kind, payload.decode(data), attempt, at)


def spans(job: Job, ready_at: datetime | None) -> Generator[Span]:
    """Yield the spans of a job in order."""
    since = job.created_at
    errors = [entry for entry in map(_entry, job.errors) if entry is not None]
    for n, (began, ended, entry) in enumerate(errors):
        known = job.run_at is not None and job.run_at <= began  # else run_at is of a later attempt
        yield from _wait(since, began, job.run_at if known else None)
        last = n == len(errors) - 1
        is_end = last and job.status.finished and entry.get("attempt") == job.attempts
        yield Span(
            kind=Kind.RUNNING,
            began=began,
            ended=ended,
            attempt=_int(entry.get("attempt")),
            worker_id=_text(entry.get("worker_id")),
            outcome=str(job.status) if is_end else "retried",
            error=_text(entry.get("error")),
            traceback=_text(entry.get("traceback")),
        )
        since = ended
        if is_end:
            return
    yield from _after_errors(job, ready_at, since)


def _after_errors(job: Job, ready_at: datetime | None, since: datetime) -> Generator[Span]:
    """Yield what came after the last failed attempt."""
    if job.status is State.PENDING:
        limited = job.arrival is not None  # then it may have waited for a slot before it joined
        if job.waits_for in (WaitsFor.KEY, WaitsFor.LIMIT):
            yield from _wait(since, None, job.run_at, Kind.LIMITED)
        elif ready_at is None:
            yield Span(kind=Kind.SCHEDULED, began=since, ended=None)
        elif limited and ready_at > since:
            yield from _wait(since, ready_at, job.run_at, Kind.LIMITED)
            yield Span(kind=Kind.WAITING, began=ready_at, ended=None)
        else:
            yield from _wait(since, None, ready_at if ready_at > since else None)
        return
    if job.claimed_at is None:  # ended while it waited
        yield from _wait(since, job.completed_at, None)
        return
    yield from _wait(since, job.claimed_at, job.run_at)
    started = job.started_at or (job.completed_at if job.status.finished else None)
    if started is None or started > job.claimed_at:
        yield Span(
            kind=Kind.CLAIMED,
            began=job.claimed_at,
            ended=started,
            attempt=job.attempts,
            worker_id=job.worker_id,
        )
    if started is not None:
        yield Span(
            kind=Kind.RUNNING,
            began=started,
            ended=job.completed_at,
            attempt=job.attempts,
            worker_id=job.worker_id,
            outcome=str(job.status) if job.status.finished else None,
            error=job.last_error if job.status in (State.FAILED, State.CANCELLED) else None,
        )


def _wait(
    since: datetime, until: datetime | None, due: datetime | None, then: Kind = Kind.WAITING
) -> Generator[Span]:
    """Yield a wait: scheduled until it is due, then in line."""
    if due is not None and due > since:
        scheduled_until = due if until is None else min(due, until)
        yield Span(kind=Kind.SCHEDULED, began=since, ended=scheduled_until)
        since = scheduled_until
    if until is None or until > since:
        yield Span(kind=then, began=since, ended=until)


def _entry(entry: Any) -> tuple[datetime, datetime, dict[str, Any]] | None:
    """Read one stored error; a plain INSERT may have written anything."""
    if not isinstance(entry, dict):
        return None
    fields: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    ended = instant_of(fields.get("ended_at"))
    began = instant_of(fields.get("started_at")) or ended
    return None if ended is None or began is None else (began, ended, fields)


def instant_of(value: Any) -> datetime | None:
    """Read an instant of a stored error; None if it is not an instant with a time zone."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return at if at.utcoffset() is not None else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) else None
