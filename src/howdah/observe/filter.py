"""Filter: which jobs a question is about.

Comes before  page.py, and everything that lists, counts or changes jobs by filter
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from howdah.errors import BadInput
from howdah.states import State
from howdah.waits_for import WaitsFor

LIVE = tuple(state for state in State if not state.finished)
_BIGINT = 2**63


class Filter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs; a field that is left out matches every job."""

    status: tuple[State, ...] = ()
    job_type: tuple[str, ...] = ()
    queue: tuple[str, ...] = ()  # of its type
    priority: int | None = None
    worker_id: str | None = None
    key: str | None = None  # its concurrency key
    limited_by: str | None = None  # the name of its limit; for one key of it: name:key
    waits_for: tuple[WaitsFor, ...] = ()  # of pending jobs
    attempts_from: int | None = None
    attempts_to: int | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    error: str | None = None  # a part of the last error, upper or lower case
    fingerprint: str | None = None  # of the last error: see failures.py
    payload: tuple[tuple[str, str], ...] = ()  # key and value; the value is JSON or text

    def __post_init__(self) -> None:
        for at in (self.created_from, self.created_to):
            if at is not None and at.utcoffset() is None:
                raise BadInput(f"{at.isoformat()} has no time zone: add one, such as +00:00")
        names = (*self.job_type, *self.queue, self.worker_id, self.key, self.limited_by)
        for text in (*names, self.error, self.fingerprint):
            if text is not None and "\0" in text:
                raise BadInput("a filter cannot contain a NUL character")
        for number in (self.priority, self.attempts_from, self.attempts_to):
            if number is not None and not -_BIGINT <= number < _BIGINT:
                raise BadInput(f"{number} is too large for a filter: use a 64-bit integer")

    @property
    def states(self) -> tuple[State, ...]:
        """The states of jobs that can match."""
        if not (self.waits_for or self.limited_by):
            return self.status or tuple(State)
        possible = (State.PENDING,) if self.waits_for else LIVE  # a job that has ended has no limit
        return tuple(state for state in possible if not self.status or state in self.status)
