"""Job: the forms that a job has on its way.

    Draft   what a caller enqueues          enqueue
    Claim   what a worker has claimed       claim → run → settle
    Job     a row of howdah.jobs            observe

A *lease* proves that an attempt is the current one: the job, its worker, and the number of the
attempt. `claim` creates it and every settling verb requires it. Payloads are encoded JSON until the
handler's parameter types decode them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Literal
from uuid import UUID

import msgspec

from howdah.states import State
from howdah.waits_for import WaitsFor


class Priority(IntEnum):
    """Named priorities; any other integer works, too. Higher ones run first."""

    EXPLICIT = 150  # a user asked for the job
    DISCOVERED = 100  # a program found the work; the default
    BACKFILL = 30  # work that can wait


DEFAULT_PRIORITY = int(Priority.DISCOVERED)
DEFAULT_MAX_ATTEMPTS = 3
NEVER = timedelta.max  # as `expires` of a draft: it never expires, whatever its type registered

_1970 = datetime(1970, 1, 1, tzinfo=UTC)


def from_epoch(seconds: float) -> datetime:
    """Convert seconds since 1970, exact to the microsecond from 1834 to 2105."""
    return _1970 + timedelta(seconds=seconds)


_FIRING = 0x8C10  # in the middle of the id of a job that a schedule enqueued


def scheduled_for(id: UUID) -> datetime | None:
    """Return the time of the firing that enqueued a job; None: no schedule did.

    In SQL  sql/37_schedules/firing_id.sql
    """
    number = id.int
    if number >> 64 & 0xFFFF != _FIRING:
        return None
    return _1970 + timedelta(milliseconds=number >> 14 & (1 << 48) - 1)


Until = Literal["started", "ended"]
OnConflict = Literal["existing", "replace", "debounce", "error"]


class Unique(msgspec.Struct, frozen=True, gc=False):
    """The unique key of a draft, and how long its job holds it."""

    key: str | None  # None: the payload is the key
    until: Until | None = None
    held_for: timedelta | None = None
    on_conflict: OnConflict = "existing"


class Draft(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job that is not enqueued yet. It has its id already."""

    id: UUID
    job_type: str
    data: str
    priority: int | None = None  # None: the value that workers registered for its type
    max_attempts: int | None = None  # the same
    run_at: datetime | None = None
    delay: timedelta | None = None
    expires: timedelta | None = None  # so long after it is due; None: as registered for its type
    expires_at: datetime | None = None
    trace: str | None = None  # a W3C traceparent
    unique: Unique | None = None
    key: str | None = None  # the concurrency key


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Proves that an attempt is the current one."""

    id: UUID
    worker_id: str
    attempt: int


class Claim(msgspec.Struct, frozen=True, gc=False):
    """A job that a worker has claimed, with only the fields that a worker needs.

    Its instants are seconds since 1970: three datetimes per job took an eighth of a worker's time
    for a job that does nothing.
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
    trace: str | None = None  # only if the queue is traced
    in_run: bool = False  # of several jobs of an ordered key: see runs.py


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A row of howdah.jobs, as it was read."""

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
    expires_at: datetime | None
    unique_key: str | None
    key: str | None  # the concurrency key
    limited_by: str | None  # the name of its limit; of a limit per key with a colon and the key
    admission: str | None  # which slots it has, as the database stores it: see docs/guides/admit.md
    arrival: int | None  # its number in the order of enqueueing; None: it has no key and no limit
    waits_for: WaitsFor | None  # None: it is not pending
    result: Any
    errors: list[dict[str, Any]]

    @property
    def lease(self) -> Lease:
        """The lease of the attempt at the time of reading."""
        return Lease(self.id, self.worker_id or "", self.attempts)

    @property
    def scheduled_for(self) -> datetime | None:
        """The time of the firing that enqueued the job; None: no schedule did."""
        return scheduled_for(self.id)
