"""Events: what somebody who follows a job gets to see.

`Emitted` events are stored and numbered: a follower that comes back asks for what is
above the last number it saw, and misses nothing and repeats nothing. `Progressed` is the
state at this moment, not a history; `Ended` comes once, last.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from howdah.states import State


class Progressed(msgspec.Struct, frozen=True):
    """How far the job is, and in which state."""

    status: State
    percent: int
    stage: str | None
    attempt: int


class Emitted(msgspec.Struct, frozen=True):
    """Something the handler said with `ctx.emit`."""

    number: int
    kind: str
    data: Any
    attempt: int
    created_at: datetime


class Ended(msgspec.Struct, frozen=True):
    """How the job ended. Nothing comes after it."""

    status: State
    result: Any
    error: str | None


Event = Progressed | Emitted | Ended

DROPPED = "howdah.dropped"  # the kind of the note that stands for events a flood lost
