"""Outcomes: the ways in which an attempt can end, as values.

A handler returns or raises Retry, Snooze, Fail or Cancel to end that way; if it returns anything
else, the job completes. These are exceptions, so any function that the handler calls can raise
them. `ctx.sleep` and `ctx.wait_for` leave the handler by raising Suspended. `settle` maps every
outcome to its verb, in one `match` that the type checker keeps complete.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from howdah.checks.durations import check_wait
from howdah.job import Claim
from howdah.steps import StepKey
from howdah.text.reasons import name_of, reason_from


class Complete(msgspec.Struct, frozen=True, gc=False):
    """The handler returned. `result` is encoded JSON, or None if it returned None."""

    result: str | None = None


class Committed(Complete, frozen=True, gc=False):
    """The job was completed in a transaction that is committed: nothing is left to write."""


class _Decision(Exception):
    """An outcome that a handler may raise or return.

    The reason is text, an exception or any other object; it is stored as text.
    """

    def __init__(self, reason: object = "") -> None:
        self.reason: str = reason_from(reason)
        super().__init__(self.reason)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason!r})"


def check_after(outcome: object, after: object) -> timedelta:
    """Check the wait that a handler asked for."""
    return check_wait(f"after in {name_of(type(outcome))}(…)", after)


class Retry(_Decision):
    """The attempt failed; retry after `after`, or after the backoff of the job type."""

    def __init__(self, reason: object = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.after: timedelta | None = None if after is None else check_after(self, after)
        self.traceback: str | None = None


class Snooze(_Decision):
    """Run the job again after `after`. The attempt does not count."""

    def __init__(self, after: timedelta | float, reason: object = "") -> None:
        super().__init__(reason)
        self.after: timedelta = check_after(self, after)


class Fail(_Decision):
    """The job failed, and a retry would not help."""

    def __init__(self, reason: object = "", *, traceback: str | None = None) -> None:
        super().__init__(reason)
        self.traceback = traceback


class Cancel(_Decision):
    """The job is not needed any more."""


class Release(msgspec.Struct, frozen=True, gc=False):
    """The job was not run, because the worker stops or cannot start it soon."""


class HandBack(msgspec.Struct, frozen=True, gc=False):
    """This worker cannot read the payload; a worker with other code may.

    `signature` is the signature of this worker's code if only other code can help: if it is the
    newest one, the job fails.
    """

    reason: str
    signature: str | None = None


class Suspend(msgspec.Struct, frozen=True, gc=False):
    """The job sleeps or waits for signals. The attempt does not count."""

    blocked: tuple[StepKey, ...]


class Suspended(BaseException):
    """Leaves a handler that sleeps or waits for a signal; it runs again from the top.

    Not an Exception, so `except Exception` lets it pass. `finally` blocks run.
    """

    def __init__(self, blocked: tuple[StepKey, ...]) -> None:
        super().__init__("the job sleeps or waits for a signal: let this exception pass")
        self.blocked = blocked


Outcome = Complete | Retry | Snooze | Fail | Cancel | Release | HandBack | Suspend


class Ending(msgspec.Struct, frozen=True, gc=False):
    """One attempt and how it ended."""

    claim: Claim
    outcome: Outcome
    began: float | None = None  # time.monotonic() when the handler was called; None: never
    ended: float | None = None  # time.monotonic() when it returned or raised
