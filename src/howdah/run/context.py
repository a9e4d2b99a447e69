"""Context: the running job, as its handler sees it.

All kinds of handlers use the same class. `ctx.progress(…)` and `ctx.emit(…)` take effect when they
are called. An async handler may await them, which lets other jobs run. Steps, sleeps and waits are
awaited in an async handler, and block a plain one. All raise `StaleLease` once the handler has lost
its job. A handler in a thread cannot be stopped: this is how it finds out.

`ctx.transaction()` and `ctx.complete_in(…)` complete the job in a transaction: completions.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

from howdah.errors import BadInput, StaleLease
from howdah.job import Claim, from_epoch, scheduled_for
from howdah.outcomes import Complete, Fail, Outcome
from howdah.run.steps import StepBackend, Steps

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from howdah.run.completions import Completions
    from howdah.run.own_transaction import OwnTransaction


class Reporter(Protocol):
    """Takes the reports of a handler: in the worker, or through the pipe of a child process."""

    @property
    def completions(self) -> Completions | None: ...  # None: a child process has none

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None: ...
    def emit(self, claim: Claim, kind: str, data: object) -> None: ...
    def checkpoint(self, claim: Claim, data: object) -> None: ...

    @property
    def steps(self) -> StepBackend: ...


class _Closed:
    """Refuses reports: they would wait for the transaction that completes the job."""

    def __init__(self, reporter: Reporter) -> None:
        self.completions = reporter.completions
        self.steps = reporter.steps

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None:
        self.refuse(claim)

    def emit(self, claim: Claim, kind: str, data: object) -> None:
        self.refuse(claim)

    def checkpoint(self, claim: Claim, data: object) -> None:
        self.refuse(claim)

    def refuse(self, claim: Claim) -> NoReturn:
        raise StaleLease(
            f"job {claim.id} was completed in a transaction: report progress, events and steps "
            "before complete_in, or in the block of ctx.transaction()"
        )


class _Reported:
    """The report is made already; to await it only lets other jobs run."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        yield  # the same as asyncio.sleep(0), without a coroutine


_REPORTED = _Reported()
DONE: Awaitable[None] = _REPORTED


class JobContext:
    """The running job, as its handler sees it."""

    __slots__ = ("_claim", "_lost", "_reporter", "_steps")

    def __init__(self, claim: Claim, reporter: Reporter) -> None:
        self._claim = claim
        self._reporter = reporter
        self._lost: str | None = None
        self._steps: Steps | None = None  # until the handler asks for a step

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

    @overload
    def step(
        self, name: str, function: Callable[P, Awaitable[T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> Awaitable[T]: ...
    @overload
    def step(
        self, name: str, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call the function and store its result; in a later attempt, only return the result.

        Steps that share a name are numbered in the order of the calls.
        """
        return self._all_steps().step(name, function, args, kwargs)

    def sleep(self, length: timedelta | float, *, name: str = "sleep") -> Awaitable[None]:
        """Put the job back for so long. Then the handler begins again, and this returns at once."""
        return self._all_steps().sleep(length, name)

    def wait_for(self, name: str, timeout: timedelta | float | None = None) -> Any:
        """Wait for a signal, as `sleep` does, and return its data; raises SignalTimeout."""
        return self._all_steps().wait_for(name, timeout)

    def checkpoint(self, data: object) -> _Reported:
        """Store where the handler is, in place of the checkpoint before; costs almost nothing."""
        self._refuse_if_lost()
        self._reporter.checkpoint(self._claim, data)
        return _REPORTED

    def last_checkpoint(self) -> Any:
        """Return the last checkpoint of the attempts before; None if there is none."""
        return self._all_steps().last_checkpoint()

    def _all_steps(self) -> Steps:
        self._refuse_if_lost()
        if self._steps is None:
            self._steps = Steps(self._claim, self._reporter.steps, self._refuse_step)
        return self._steps

    def _refuse_step(self) -> None:
        self._refuse_if_lost()
        if isinstance(self._reporter, _Closed):
            self._reporter.refuse(self._claim)

    @property
    def idempotency_key(self) -> str:
        """A text that is the same in all attempts of this job, for effects in other systems."""
        return f"howdah-{self._claim.id}"

    def transaction(self, *, idle_timeout: timedelta | float = 60.0) -> OwnTransaction:
        """Open a transaction in the queue's database; its end completes the job.

            async with ctx.transaction() as conn:
                await conn.execute("insert into …")

        The writes of the block and the completion are committed together, or not at all. `conn` is
        an asyncpg connection. The server ends the transaction if no statement comes for
        `idle_timeout`. For async handlers.
        """
        return self._completions().transaction(self, self._claim, idle_timeout)

    def complete_in(self, conn: Any, result: object = None) -> Awaitable[None]:
        """Complete the job in the open transaction of your own connection, as its last statement.

        `conn` is a connection of asyncpg, psycopg or psycopg2, a connection or session of
        SQLAlchemy, or django.db.connection, to the queue's database. Then commit. Async handlers
        await this call; in thread handlers it is a plain call.
        """
        return self._completions().complete_in(self, self._claim, conn, result)

    def _completions(self) -> Completions:
        self._refuse_if_lost()
        if (completions := self._reporter.completions) is None:
            raise BadInput(
                f'{self.job_type} runs in a child process (run="process"), which cannot complete '
                'its job in a transaction: use an async handler or run="thread"'
            )
        return completions

    def _refuse_if_lost(self) -> None:
        if self._lost is not None:
            raise StaleLease(
                f"job {self.id} is no longer this handler's: {self._lost}. Stop working on it"
            )


current: ContextVar[JobContext | None] = ContextVar("howdah_job", default=None)


def current_job() -> JobContext | None:
    """Return the running job; None outside a handler."""
    return current.get()


def close_reports(context: JobContext) -> None:
    """Refuse reports and steps of this context from now on."""
    steps = context._steps  # pyright: ignore[reportPrivateUsage]
    if steps is not None and steps.at_work:
        raise BadInput(
            f"job {context.id} cannot be completed while one of its steps is at work: "
            "await its steps before"
        )
    reporter = context._reporter  # pyright: ignore[reportPrivateUsage]
    context._reporter = _Closed(reporter)  # pyright: ignore[reportPrivateUsage]


def refuse_if_lost(context: JobContext) -> None:
    """Raise StaleLease if the handler has lost its job."""
    context._refuse_if_lost()  # pyright: ignore[reportPrivateUsage]


def lose(context: JobContext, why: str) -> None:
    """Mark the job of a context as lost, for the first reason given; called by the worker."""
    if context._lost is None:  # pyright: ignore[reportPrivateUsage]
        context._lost = why  # pyright: ignore[reportPrivateUsage]


Ended = TypeVar("Ended", bound=Outcome | None)


def outcome_unless_left(context: JobContext, outcome: Ended) -> Ended | Fail:
    """Return the outcome of an attempt; Fail if its handler caught what makes it sleep."""
    steps = context._steps  # pyright: ignore[reportPrivateUsage]
    if steps is None or not steps.left or type(outcome) is not Complete:
        return outcome
    return Fail(
        "the handler went on after ctx.sleep or ctx.wait_for had to leave it: it caught the "
        "exception Suspended. Catch Exception, not BaseException, or raise it again"
    )
