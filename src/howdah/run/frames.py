"""Frames: what a worker and its child processes say to each other.

Each frame is a length and a JSON document over a socket pair. Nothing is pickled, so neither
side runs what the other sends.
"""

from __future__ import annotations

import struct

import msgspec

from howdah.job import Claim

_LENGTH = struct.Struct("!I")


class Begin(msgspec.Struct, tag="begin"):
    """To the child, first: what its world looks like."""

    path: list[str]
    main: str | None


class Do(msgspec.Struct, tag="do"):
    """To the child: run this job with this function."""

    module: str
    qualname: str
    claim: Claim


class Progress(msgspec.Struct, tag="progress"):
    """From the child: the handler reports progress."""

    percent: float | None
    stage: str | None


class Emit(msgspec.Struct, tag="emit"):
    """From the child: the handler emits an event; `data` is encoded JSON."""

    kind: str
    data: str


class Returned(msgspec.Struct, tag="returned"):
    """From the child: the handler returned; `result` is encoded JSON."""

    result: str | None


class Said(msgspec.Struct, tag="said"):
    """From the child: the handler decided about its attempt with an outcome."""

    outcome: str
    reason: str
    after: float | None


class Raised(msgspec.Struct, tag="raised"):
    """From the child: the handler raised."""

    line: str
    traceback: str | None
    retry: bool


class Ready(msgspec.Struct, tag="ready"):
    """From the child: it has started."""


ToChild = Begin | Do
FromChild = Ready | Progress | Emit | Returned | Said | Raised

to_child: msgspec.json.Decoder[ToChild] = msgspec.json.Decoder(ToChild)
from_child: msgspec.json.Decoder[FromChild] = msgspec.json.Decoder(FromChild)

HEADER = _LENGTH.size
LONGEST = 16 * 1024 * 1024  # bytes a child may say at once: far more than any result or event


def frame(message: ToChild | FromChild) -> bytes:
    body = msgspec.json.encode(message)
    return _LENGTH.pack(len(body)) + body


def length(header: bytes) -> int:
    return int(_LENGTH.unpack(header)[0])
