"""Outcomes: how an attempt can end, as values.

A handler ends well by returning anything else, and in one of these ways by returning or
raising it. `settle` gives every outcome its verb, in one `match` that the type checker keeps
complete. They are exceptions so that a function far below the handler can raise them.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from howdah.checks.durations import check_wait
from howdah.job import Claim
from howdah.text.reasons import name_of, reason_from


class Complete(msgspec.Struct, frozen=True, gc=False):
    """It ended well. `result` is encoded JSON, or None where there was nothing to say."""

    result: str | None = None


class _Say(Exception):
    """What a handler may raise or return to decide about its own attempt.

    The reason is text, an exception or any other object: kept is what can be read.
    """

    def __init__(self, reason: object = "") -> None:
        self.reason: str = reason_from(reason)
        super().__init__(self.reason)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason!r})"


def check_after(outcome: object, after: object) -> timedelta:
    """Return the wait that a handler asked for, checked."""
    return check_wait(f"after in {name_of(type(outcome))}(…)", after)


class Retry(_Say):
    """This attempt failed; try again `after` this long, or by the job's backoff."""

    def __init__(self, reason: object = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(reason)
        self.after: timedelta | None = None if after is None else check_after(self, after)
        self.traceback: str | None = None


class Snooze(_Say):
    """Not now: come back `after` this long. The attempt does not count."""

    def __init__(self, after: timedelta | float, reason: object = "") -> None:
        super().__init__(reason)
        self.after: timedelta = check_after(self, after)


class Fail(_Say):
    """This failed, and trying again would not help."""

    def __init__(self, reason: object = "", *, traceback: str | None = None) -> None:
        super().__init__(reason)
        self.traceback = traceback


class Cancel(_Say):
    """Nobody needs this any more."""


class Release(msgspec.Struct, frozen=True, gc=False):
    """Handed back unrun: the worker stops, or cannot start it soon."""


class HandBack(msgspec.Struct, frozen=True, gc=False):
    """Handed back because this worker cannot read its payload; one with other code may.

    `signature` is that of this worker's code where only other code helps: if this is the newest,
    the job fails.
    """

    reason: str
    signature: str | None = None


Outcome = Complete | Retry | Snooze | Fail | Cancel | Release | HandBack


class Ending(msgspec.Struct, frozen=True, gc=False):
    """One attempt and how it ended."""

    claim: Claim
    outcome: Outcome
    began: float | None = None  # time.monotonic() when the handler was called; None: it never was
    ended: float | None = None  # and when it had returned or raised
