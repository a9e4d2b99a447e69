"""Wire: just enough of PostgreSQL's protocol to ask "are you there?" and create a database.

Comes after   launch.py, which has started or found a server
Comes before  server.py, which hands out the DSN

Written by hand, so that neither a driver nor `psql` is needed to start a server, and the
answer is the one every client will get. No password is ever asked for: see settings.py.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from howdah.embedded.home import SUPERUSER

PROTOCOL = 3 << 16
PATIENCE = 10.0


class Refused(Exception):
    """The server answered with an error; `code` is its SQLSTATE."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class Conversation:
    """One short session. Raises `Refused`, or OSError where nobody answers."""

    def __init__(self, path: Path, database: str) -> None:
        self.parameters: dict[str, str] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(PATIENCE)
            self._socket.connect(str(path))
            words = f"user\0{SUPERUSER}\0database\0{database}\0\0".encode()
            self._socket.sendall(struct.pack("!ii", len(words) + 8, PROTOCOL) + words)
            self._read_until_ready()
        except BaseException:
            self._socket.close()
            raise

    def run(self, statement: str) -> None:
        words = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(words) + 4) + words)
        self._read_until_ready()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        with self._socket:
            if error is None:
                self._socket.sendall(b"X" + struct.pack("!i", 4))

    def _read_until_ready(self) -> None:
        for kind, body in self._messages():
            match kind:
                case b"E":
                    raise _refusal(body)
                case b"S":
                    name, value, _ = body.decode().split("\0")
                    self.parameters[name] = value
                case b"R" if body != b"\0\0\0\0":
                    raise Refused("28000", "the server asks for a password")
                case b"Z":
                    return
                case _:
                    pass

    def _messages(self) -> Iterator[tuple[bytes, bytes]]:
        while True:
            kind = self._read(1)
            (length,) = struct.unpack("!i", self._read(4))
            yield kind, self._read(length - 4)

    def _read(self, wanted: int) -> bytes:
        got = b""
        while len(got) < wanted:
            if not (piece := self._socket.recv(wanted - len(got))):
                raise ConnectionResetError("the server hung up")
            got += piece
        return got


def _refusal(body: bytes) -> Refused:
    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    return Refused(fields.get(b"C", ""), fields.get(b"M", ""))
