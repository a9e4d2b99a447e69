"""Life: one job from its enqueueing to its end, as a timeline.

The row knows when the job was handed over, each attempt that went wrong and the attempt that did
not; what lies between is waiting. Of a job that failed very often the row keeps the last errors
only, so the timeline begins with them.
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
from howdah.states import State
from howdah.store import Store, query
from howdah.store.rows import JOB_COLUMNS, job_from

EVENTS = 200


class Kind(StrEnum):
    """What a job does for a while."""

    SCHEDULED = "scheduled"  # waits for its time, or for a retry
    WAITING = "waiting"  # stands in line
    CLAIMED = "claimed"  # in a worker's hands, not started
    RUNNING = "running"


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a job's life."""

    kind: Kind
    began: datetime
    ended: datetime | None  # None: it goes on
    attempt: int | None = None
    worker_id: str | None = None
    outcome: str | None = None  # of an attempt: completed, failed, cancelled, retried
    error: str | None = None
    traceback: str | None = None


class Life(msgspec.Struct, frozen=True, kw_only=True):
    """A job, its parts in order, and what it emitted last."""

    job: Job
    at: datetime  # the server's clock when it was read
    ready_at: datetime | None  # since when it stands in line
    spans: list[Span]
    events: list[Emitted]  # the last ones, in order

    @property
    def waited(self) -> timedelta:
        """How long it stood in line, all in all."""
        return self._sum(Kind.WAITING)

    @property
    def ran(self) -> timedelta:
        """How long it ran, all in all."""
        return self._sum(Kind.RUNNING)

    def _sum(self, kind: Kind) -> timedelta:
        own = (span for span in self.spans if span.kind is kind)
        return sum(((one.ended or self.at) - one.began for one in own), timedelta())


async def life(
    store: Store, id: UUID, *, events: int = EVENTS, within: timedelta = query.WITHIN
) -> Life:
    """Read one job with its timeline and so many of its events; raises JobNotFound."""
    rows = await query.fetch(
        store,
        within,
        f"select {JOB_COLUMNS}, ready_at, howdah.clock() from howdah.jobs_by_id(array[$1::uuid])",  # noqa: S608
        id,
    )
    if not rows:
        raise JobNotFound(f"there is no job {id}: never committed, or pruned after its retention")
    values = dict(rows[0])
    now, ready_at = values.pop("clock"), values.pop("ready_at")
    job = job_from(values)
    emitted = await query.fetch(
        store,
        within,
        "select number, kind, data, attempt, created_at from howdah.job_events "
        "where job_id = $1 and number > $2 order by number",
        id,
        max(0, job.events_count - events),
    )
    return Life(
        job=job,
        at=now,
        ready_at=ready_at,
        spans=list(spans(job, ready_at)),
        events=[
            Emitted(n, kind, payload.decode(data), attempt, at)
            for n, kind, data, attempt, at in emitted
        ],
    )


def spans(job: Job, ready_at: datetime | None) -> Generator[Span]:
    """Tell a job's life in order."""
    since = job.created_at
    errors = [entry for entry in map(_entry, job.errors) if entry is not None]
    for n, (began, ended, entry) in enumerate(errors):
        known = job.run_at is not None and job.run_at <= began  # else it is of a later attempt
        yield from _wait(since, began, job.run_at if known else None)
        last = n == len(errors) - 1
        over = last and job.status.finished and entry.get("attempt") == job.attempts
        yield Span(
            kind=Kind.RUNNING,
            began=began,
            ended=ended,
            attempt=_int(entry.get("attempt")),
            worker_id=_text(entry.get("worker_id")),
            outcome=str(job.status) if over else "retried",
            error=_text(entry.get("error")),
            traceback=_text(entry.get("traceback")),
        )
        since = ended
        if over:
            return
    yield from _now(job, ready_at, since)


def _now(job: Job, ready_at: datetime | None, since: datetime) -> Generator[Span]:
    """Tell what came after the last attempt that went wrong."""
    if job.status is State.PENDING:
        if ready_at is None:
            yield Span(kind=Kind.SCHEDULED, began=since, ended=None)
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


def _wait(since: datetime, until: datetime | None, due: datetime | None) -> Generator[Span]:
    """Tell a wait: for its time as long as that had not come, then in line."""
    if due is not None and due > since:
        scheduled_until = due if until is None else min(due, until)
        yield Span(kind=Kind.SCHEDULED, began=since, ended=scheduled_until)
        since = scheduled_until
    if until is None or until > since:
        yield Span(kind=Kind.WAITING, began=since, ended=until)


def _entry(entry: Any) -> tuple[datetime, datetime, dict[str, Any]] | None:
    """Read one kept error; a plain INSERT may have said anything."""
    if not isinstance(entry, dict):
        return None
    said: dict[str, Any] = entry  # pyright: ignore[reportUnknownVariableType]
    ended = instant_of(said.get("ended_at"))
    began = instant_of(said.get("started_at")) or ended
    return None if ended is None or began is None else (began, ended, said)


def instant_of(value: Any) -> datetime | None:
    """Read a moment that a kept error tells; None where it tells none."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return at if at.utcoffset() is not None else None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _int(value: Any) -> int | None:
    return value if isinstance(value, int) else None
