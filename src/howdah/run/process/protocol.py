"""Frames: what a worker and its child processes say to each other.

Each frame is a length and a JSON document over a socket pair, the pipe. Jobs reach a child as the
bare document, on its tray (tray.py), or framed if they are too large for it. Nothing is pickled,
so neither side runs what the other sends. What a child sends is checked: shapes and lengths here,
values by whoever keeps them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from howdah.checks.durations import FAR
from howdah.job import Claim
from howdah.run.job_logging import LogLines
from howdah.run.report_checks import MAX_KIND, MAX_STAGE
from howdah.text.reasons import LINE, TRACEBACK, reason_of

# A child of ours says nothing that is longer, so what is longer is refused.
Line = Annotated[str, Meta(max_length=LINE)]
Text = Annotated[str, Meta(max_length=TRACEBACK + 1)]

_LENGTH = struct.Struct("!I")


class Begin(msgspec.Struct, tag="begin"):
    """To the child, first: what its world looks like."""

    path: list[str]
    main: str | None  # the file the worker was started as
    log: LogLines | None = None  # how it writes log lines, where it is howdah that writes them


class Do(msgspec.Struct, tag="do"):
    """To the child: run this job with this function."""

    module: str
    qualname: str
    claim: Claim


class Started(msgspec.Struct, tag="started"):
    """From the child: the next job begins, in the order in which they were given to it."""


class Progress(msgspec.Struct, tag="progress"):
    """From the child: the handler reports progress."""

    percent: Annotated[float, Meta(ge=0, le=100)] | None
    stage: Annotated[str, Meta(max_length=MAX_STAGE)] | None


class Emit(msgspec.Struct, tag="emit"):
    """From the child: the handler emits an event; `data` is encoded JSON."""

    kind: Annotated[str, Meta(min_length=1, max_length=MAX_KIND)]
    data: str


class Returned(msgspec.Struct, tag="returned"):
    """From the child: the handler returned; `result` is encoded JSON."""

    result: str | None


class Said(msgspec.Struct, tag="said"):
    """From the child: the handler decided about its attempt with an outcome."""

    outcome: Literal["Retry", "Snooze", "Cancel"]
    reason: Line
    after: Annotated[float, Meta(ge=0, le=FAR.total_seconds())] | None


class Raised(msgspec.Struct, tag="raised"):
    """From the child: the handler raised."""

    line: Line
    traceback: Text | None
    retry: bool


class Ready(msgspec.Struct, tag="ready"):
    """From the child: it has started."""


Ended = Returned | Said | Raised
ToChild = Begin | Do
FromChild = Ready | Started | Progress | Emit | Ended


def encode(message: ToChild | FromChild) -> bytes:
    return msgspec.json.encode(message)


to_child: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)
_from_child: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)

HEADER = _LENGTH.size
LONGEST = 16 * 1024 * 1024  # bytes a child may say at once: far more than any result or event


class TooLong(ValueError):
    """A frame is longer than anything a child of ours would say."""


def frame(message: ToChild | FromChild) -> bytes:
    return framed(encode(message))


def framed(document: bytes) -> bytes:
    return _LENGTH.pack(len(document)) + document


def length(header: bytes) -> int:
    return int(_LENGTH.unpack(header)[0])


class Bad(msgspec.Struct):
    """Not a message, though its end is known: what follows can still be heard."""

    why: str


class Hearing:
    """Makes messages of a child out of bytes, however the pipe has cut them."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def unfinished(self) -> bool:
        """Whether a frame has begun to arrive and has not ended."""
        return bool(self._rest)

    def hear(self, data: bytes) -> Iterator[FromChild | Bad]:
        """Yield what is complete; raises TooLong where the end of a frame cannot be known."""
        heard: bytes | bytearray = data
        if self._rest:
            self._rest += data
            heard = self._rest
        at, end = 0, len(heard)
        while end - at >= HEADER:
            size = int(_LENGTH.unpack_from(heard, at)[0])
            if size > LONGEST:
                raise TooLong(f"{size:,} bytes at once")
            following = at + HEADER + size
            if following > end:
                break
            yield _decoded(heard[at + HEADER : following])
            at = following
        self._rest = bytearray(heard[at:]) if at or heard is data else self._rest


def _decoded(document: bytes | bytearray) -> FromChild | Bad:
    try:
        return _from_child.decode(document)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        return Bad(f"what is no message: {reason_of(error)}")
