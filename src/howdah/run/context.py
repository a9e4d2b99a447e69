"""Context: the running job, as its handler sees it.

All kinds of handlers use the same class. `ctx.progress(…)` and `ctx.emit(…)` take effect when they
are called. An async handler may await them, which lets other jobs run. They raise `StaleLease` once
the handler has lost its job. A handler in a thread cannot be stopped: this is how it finds out.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from datetime import datetime
from typing import Protocol
from uuid import UUID

from howdah.errors import StaleLease
from howdah.job import Claim, from_epoch, scheduled_for


class Reporter(Protocol):
    """Takes the reports of a handler: in the worker, or through the pipe of a child process."""

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None: ...
    def emit(self, claim: Claim, kind: str, data: object) -> None: ...


class _Reported:
    """The report is made already; to await it only lets other jobs run."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield  # the same as asyncio.sleep(0), without a coroutine


_REPORTED = _Reported()


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
        return from_epoch(self._claim.created_at)

    @property
    def scheduled_for(self) -> datetime | None:
        """The time of the firing that enqueued the job; None: no schedule did."""
        return scheduled_for(self._claim.id)

    @property
    def lost(self) -> bool:
        """Whether this handler has lost the job: it was cancelled, timed out or recovered."""
        return self._lost is not None

    def progress(self, percent: float | None = None, stage: str | None = None) -> _Reported:
        """Report the progress, 0 to 100, and the stage. Costs almost nothing."""
        self._refuse_if_lost()
        self._reporter.progress(self._claim, percent, stage)
        return _REPORTED

    def emit(self, kind: str, data: object = None) -> _Reported:
        """Emit an event for followers: a kind, and any JSON data."""
        self._refuse_if_lost()
        self._reporter.emit(self._claim, kind, data)
        return _REPORTED

    def _refuse_if_lost(self) -> None:
        if self._lost is not None:
            raise StaleLease(
                f"job {self.id} is no longer this handler's: {self._lost}. Stop working on it"
            )


current: ContextVar[JobContext | None] = ContextVar("howdah_job", default=None)


def current_job() -> JobContext | None:
    """Return the running job; None outside a handler."""
    return current.get()


def lose(context: JobContext, why: str) -> None:
    """Mark the job of a context as lost, for the first reason given; called by the worker."""
    if context._lost is None:  # pyright: ignore[reportPrivateUsage]
        context._lost = why  # pyright: ignore[reportPrivateUsage]
