"""Protocol: the messages between a worker and its child processes.

A frame is a length and a JSON document, sent over a socket pair, the pipe. A job is sent to the
child's inbox (inbox.py) as the bare document, or through the pipe as a frame if it is too large.
Nothing is pickled, so neither side executes what the other sends. Messages of a child are checked:
types and lengths here, values where they are stored.
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
from howdah.steps import Request, StepKey, StoredStep
from howdah.text.reasons import LINE, TRACEBACK, reason_of

# child_main.py sends nothing longer, so anything longer is refused.
Line = Annotated[str, Meta(max_length=LINE)]
Text = Annotated[str, Meta(max_length=TRACEBACK + 1)]

_LENGTH = struct.Struct("!I")


class Begin(msgspec.Struct, tag="begin"):
    """To the child, first: how to set itself up."""

    path: list[str]
    main: str | None  # the file of the worker's program
    log: LogLines | None = None  # how to write log lines, if howdah writes them


class RunJob(msgspec.Struct, tag="run"):
    """To the child: run this job with this function."""

    module: str
    qualname: str
    claim: Claim


class Started(msgspec.Struct, tag="started"):
    """From the child: the next job has started, in the order of the inbox."""


class Progress(msgspec.Struct, tag="progress"):
    """From the child: the handler reports progress."""

    percent: Annotated[float, Meta(ge=0, le=100)] | None
    stage: Annotated[str, Meta(max_length=MAX_STAGE)] | None


class Emit(msgspec.Struct, tag="emit"):
    """From the child: the handler emits an event; `data` is encoded JSON."""

    kind: Annotated[str, Meta(min_length=1, max_length=MAX_KIND)]
    data: str


class Checkpoint(msgspec.Struct, tag="checkpoint"):
    """From the child: the handler stores a checkpoint; `data` is encoded JSON."""

    data: str


class StepRequest(msgspec.Struct, tag="step"):
    """From the child: the handler asks for its steps or stores one; the number is the answer's."""

    number: int
    request: Request


class StepAnswer(msgspec.Struct, tag="answer"):
    """To the child: the answer to a StepRequest."""

    number: int
    steps: list[StoredStep] = []
    error: str | None = None
    stale: bool = False  # the error is StaleLease


class Returned(msgspec.Struct, tag="returned"):
    """From the child: the handler returned; `result` is encoded JSON."""

    result: str | None


class Decided(msgspec.Struct, tag="decided"):
    """From the child: the handler returned or raised an outcome."""

    outcome: Literal["Retry", "Snooze", "Cancel"]
    reason: Line
    after: Annotated[float, Meta(ge=0, le=FAR.total_seconds())] | None


class Raised(msgspec.Struct, tag="raised"):
    """From the child: the handler raised."""

    line: Line
    traceback: Text | None
    retry: bool


class Left(msgspec.Struct, tag="left"):
    """From the child: the handler sleeps or waits for signals."""

    blocked: Annotated[list[StepKey], Meta(max_length=10_000)]


class Ready(msgspec.Struct, tag="ready"):
    """From the child: it has started."""


Ended = Returned | Decided | Raised | Left
Report = Progress | Emit | Checkpoint | StepRequest
ToChild = Begin | RunJob | StepAnswer
FromChild = Ready | Started | Report | Ended


def encode(message: ToChild | FromChild) -> bytes:
    return msgspec.json.encode(message)


to_child: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)
_from_child: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)

HEADER = _LENGTH.size
LONGEST = 16 * 1024 * 1024  # bytes of a frame: far more than any result or event has


class TooLong(ValueError):
    """A frame is longer than any that child_main.py sends."""


def frame(message: ToChild | FromChild) -> bytes:
    return framed(encode(message))


def framed(document: bytes) -> bytes:
    return _LENGTH.pack(len(document)) + document


def length(header: bytes) -> int:
    return int(_LENGTH.unpack(header)[0])


class BadMessage(msgspec.Struct):
    """A frame that is not a message; the frames after it can still be read."""

    why: str


class MessageReader:
    """Makes messages of the bytes that a child sends, however the pipe splits them."""

    def __init__(self) -> None:
        self._rest = bytearray()

    @property
    def unfinished(self) -> bool:
        """Whether a part of a frame has arrived, but not all of it."""
        return bool(self._rest)

    def feed(self, data: bytes) -> Iterator[FromChild | BadMessage]:
        """Add bytes and yield the complete messages; raises TooLong for an impossible length."""
        buffer: bytes | bytearray = data
        if self._rest:
            self._rest += data
            buffer = self._rest
        at, end = 0, len(buffer)
        while end - at >= HEADER:
            size = int(_LENGTH.unpack_from(buffer, at)[0])
            if size > LONGEST:
                raise TooLong(f"{size:,} bytes at once")
            following = at + HEADER + size
            if following > end:
                break
            yield _decoded(buffer[at + HEADER : following])
            at = following
        self._rest = bytearray(buffer[at:]) if at or buffer is data else self._rest


def _decoded(document: bytes | bytearray) -> FromChild | BadMessage:
    try:
        return _from_child.decode(document)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        return BadMessage(f"bytes that are no message: {reason_of(error)}")
