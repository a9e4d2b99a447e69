"""Context: what a handler sees of its own job.

One class for every kind of handler. `ctx.progress(…)` and `ctx.emit(…)` take effect when they
are called; in an async handler they may be awaited, which lets other jobs have a turn. They
raise `StaleLease` once the job is no longer this handler's, which is how a handler in a thread,
that nobody can stop from outside, finds out.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from datetime import datetime
from typing import Protocol
from uuid import UUID

from howdah.errors import StaleLease
from howdah.job import Claim, moment


class Reporter(Protocol):
    """Where a handler's reports go: the worker's own, or the pipe to it."""

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None: ...
    def emit(self, claim: Claim, kind: str, data: object) -> None: ...


class _Said:
    """Already done; awaiting it only gives other jobs a turn."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield  # as asyncio.sleep(0) does, without a coroutine of its own


_SAID = _Said()


class JobContext:
    """The running job, as its handler sees it."""

    __slots__ = ("_claim", "_lost", "_reporter")

    def __init__(self, claim: Claim, reporter: Reporter) -> None:
        self._claim = claim
        self._reporter = reporter
        self._lost: str | None = None

    @property
    def id(self) -> UUID:
        return self._claim.id

    @property
    def job_type(self) -> str:
        return self._claim.job_type

    @property
    def priority(self) -> int:
        return self._claim.priority

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1."""
        return self._claim.attempt

    @property
    def max_attempts(self) -> int:
        return self._claim.max_attempts

    @property
    def created_at(self) -> datetime:
        return moment(self._claim.created_at)

    @property
    def lost(self) -> bool:
        """Whether the job is no longer this handler's: cancelled, timed out, or given away."""
        return self._lost is not None

    def progress(self, percent: float | None = None, stage: str | None = None) -> _Said:
        """Say how far the job is, 0 to 100, and in which stage. Costs almost nothing."""
        self._refuse_when_lost()
        self._reporter.progress(self._claim, percent, stage)
        return _SAID

    def emit(self, kind: str, data: object = None) -> _Said:
        """Emit an event that others can follow: a kind, and anything JSON can hold."""
        self._refuse_when_lost()
        self._reporter.emit(self._claim, kind, data)
        return _SAID

    def _refuse_when_lost(self) -> None:
        if self._lost is not None:
            raise StaleLease(f"job {self.id} is no longer this handler's: {self._lost}")

    def _lose(self, why: str) -> None:
        self._lost = why


current: ContextVar[JobContext | None] = ContextVar("howdah_job", default=None)


def current_job() -> JobContext | None:
    """Return the job that this code works on; None outside a handler."""
    return current.get()


def lose(context: JobContext, why: str) -> None:
    """Tell a context that its job is gone; the worker's side of `lost`."""
    context._lose(why)  # pyright: ignore[reportPrivateUsage]
