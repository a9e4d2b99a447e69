"""Events: the values that a follower of a job receives.

`Emitted` events are stored and numbered: a follower that returns asks for the events above the last
number that it saw, so it misses none and gets none twice. `Progressed` is the current progress, not
a history. `Ended` comes once, as the last one.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from howdah.states import State


class Progressed(msgspec.Struct, frozen=True):
    """The progress and the state of the job."""

    status: State
    percent: int
    stage: str | None
    attempt: int


class Emitted(msgspec.Struct, frozen=True):
    """An event that the handler sent with `ctx.emit`."""

    number: int
    kind: str
    data: Any
    attempt: int
    created_at: datetime


class Ended(msgspec.Struct, frozen=True):
    """The end of the job; always the last event."""

    status: State
    result: Any
    error: str | None


Event = Progressed | Emitted | Ended

DROPPED = "howdah.dropped"  # the kind of the event that stands for events dropped by a limit
