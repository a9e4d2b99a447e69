"""Frames: what a worker and its child processes say to each other.

Each frame is a length and a JSON document over a socket pair, the pipe. Jobs reach a child as the
bare document, on its tray (tray.py), or framed if they are too large for it. Nothing is pickled,
so neither side runs what the other sends.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

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


class Started(msgspec.Struct, tag="started"):
    """From the child: the next job begins, in the order in which they were given to it."""


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


class Hearing:
    """Makes messages of a child out of bytes, however the pipe has cut them."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def hear(self, data: bytes) -> Iterator[FromChild]:
        """Yield what is complete; raises at the first thing that is no message."""
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
            yield _from_child.decode(heard[at + HEADER : following])
            at = following
        self._rest = bytearray(heard[at:]) if at or heard is data else self._rest
