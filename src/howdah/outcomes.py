"""Outcomes: how an attempt can end, as values.

A handler ends well by returning anything else, and in one of these ways by returning or
raising it. `settle` gives every outcome its verb, in one `match` that the type checker keeps
complete. They are exceptions so that a function far below the handler can raise them.
"""

from __future__ import annotations

from datetime import timedelta

import msgspec

from howdah.errors import BadInput
from howdah.job import Claim


class Complete(msgspec.Struct, frozen=True, gc=False):
    """It ended well. `result` is encoded JSON, or None where there was nothing to say."""

    result: str | None = None


class _Say(Exception):
    """What a handler may raise or return to decide about its own attempt."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason!r})"


class _Later(_Say):
    def __init__(self, after: timedelta | float | None, reason: str) -> None:
        super().__init__(reason)
        if isinstance(after, int | float):
            after = timedelta(seconds=after)
        if after is not None and after < timedelta():
            raise BadInput(f"{type(self).__name__}(after=…) must not lie in the past, got {after}")
        self.after = after


class Retry(_Later):
    """This attempt failed; try again `after` this long, or by the job's backoff."""

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(after, reason)
        self.traceback: str | None = None


class Snooze(_Later):
    """Not now: come back `after` this long. The attempt does not count."""

    after: timedelta

    def __init__(self, after: timedelta | float, reason: str = "") -> None:
        super().__init__(after, reason)


class Fail(_Say):
    """This failed, and trying again would not help."""

    def __init__(self, reason: str = "", *, traceback: str | None = None) -> None:
        super().__init__(reason)
        self.traceback = traceback


class Cancel(_Say):
    """Nobody needs this any more."""


class Release(msgspec.Struct, frozen=True, gc=False):
    """Handed back unrun: the worker stops, or cannot start it soon."""


Outcome = Complete | Retry | Snooze | Fail | Cancel | Release


class Ending(msgspec.Struct, frozen=True, gc=False):
    """One attempt and how it ended."""

    claim: Claim
    outcome: Outcome
    began: float | None = None  # time.monotonic() when the handler was called; None: it never was
    ended: float | None = None  # and when it had returned or raised
