"""Job: the values that travel the path, from a draft to a row read back.

    Draft   what a caller hands over         enqueue
    Claim   what a worker was handed         claim → run → settle
    Job     a row of `jobs` as it stands     observe

A *lease* is what proves an attempt: the job, the worker it was handed to, and which
attempt it is. `claim` hands it out and every settling verb asks it back. Payloads travel as
encoded JSON and are decoded once, into the handler's own parameter types.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any
from uuid import UUID

import msgspec

from howdah.states import State


class Priority(IntEnum):
    """The named priorities; any other integer is as good. Higher goes first."""

    EXPLICIT = 150  # a user asked for it
    DISCOVERED = 100  # the system found it; the default
    BACKFILL = 30  # whenever there is time


DEFAULT_PRIORITY = int(Priority.DISCOVERED)
DEFAULT_MAX_ATTEMPTS = 3

_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def moment(seconds: float) -> datetime:
    """Make an instant of seconds since 1970, exact to the microsecond from 1834 to 2105."""
    return _1970 + timedelta(seconds=seconds)


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job that is not handed over yet. It knows its id already."""

    id: UUID
    job_type: str
    data: str
    priority: int | None = None  # None: as the workers of its type have registered it
    max_attempts: int | None = None  # the same
    run_at: datetime | None = None
    delay: timedelta | None = None
    trace: str | None = None  # a W3C traceparent


class Lease(msgspec.Struct, frozen=True, gc=False):
    """What proves an attempt."""

    id: UUID
    worker_id: str
    attempt: int


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A job in a worker's hands, with no more of it than a worker needs.

    Its instants are seconds since 1970: to make three datetimes of every job was an eighth of what
    a worker does for one that does nothing.
    """

    id: UUID
    job_type: str
    priority: int
    data: str
    attempt: int
    max_attempts: int
    ready_at: float
    created_at: float
    claimed_at: float
    trace: str | None = None  # only where the queue is traced

    @property
    def last_attempt(self) -> bool:
        return self.attempt >= self.max_attempts


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A row of `jobs`, as it stood when it was read."""

    id: UUID
    job_type: str
    priority: int
    status: State
    data: dict[str, Any]
    progress: int
    current_stage: str | None
    events_count: int
    worker_id: str | None
    claimed_at: datetime | None
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    attempts: int
    max_attempts: int
    last_error: str | None
    run_at: datetime | None
    result: Any
    errors: list[dict[str, Any]]

    @property
    def lease(self) -> Lease:
        """The lease of the attempt this row was read in."""
        return Lease(self.id, self.worker_id or "", self.attempts)
