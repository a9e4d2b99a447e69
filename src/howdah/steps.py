"""Steps: the values that travel between a handler's steps and the database.

A `Request` goes from a handler to the worker, through the pipe if the handler runs in a child
process; a list of `StoredStep` comes back.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

MAX_NAME = 200
CHECKPOINT = "checkpoint"

Kind = Literal["step", "sleep", "signal", "checkpoint"]
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]
_Number = Annotated[int, Meta(ge=1, le=2**31 - 1)]
_Seconds = Annotated[float, Meta(ge=0, le=1e11)]


class StepKey(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which step of a job: its kind, its name, and its number among those with this name."""

    kind: Kind
    name: _Name
    number: _Number

    def __str__(self) -> str:
        times = "" if self.number == 1 else f" (number {self.number})"
        match self.kind:
            case "signal":
                return f"the wait for the signal {self.name!r}{times}"
            case "sleep":
                return f"the sleep {self.name!r}{times}"
            case _:
                return f"the step {self.name!r}{times}"


class StoredStep(msgspec.Struct, frozen=True, gc=False):
    """A step as it is stored."""

    key: StepKey
    function: str | None = None
    result: str | None = None  # encoded JSON
    ended: bool = True
    timed_out: bool = False
    ends_in: float | None = None  # seconds until a sleep ends or a wait times out


class LoadSteps(msgspec.Struct, frozen=True, tag="load"):
    """Answer the stored steps of the job."""


class SaveStep(msgspec.Struct, frozen=True, tag="save"):
    """Store a step that has ended, or a sleep that begins."""

    key: StepKey
    function: Annotated[str, Meta(max_length=MAX_NAME)] | None = None
    result: str | None = None  # encoded JSON
    began_ago: _Seconds = 0.0
    lasts: _Seconds | None = None  # of a sleep


class AwaitSignal(msgspec.Struct, frozen=True, tag="await"):
    """Take a signal, or begin to wait for it; answers the wait."""

    key: StepKey
    timeout: _Seconds | None = None


Request = LoadSteps | SaveStep | AwaitSignal
