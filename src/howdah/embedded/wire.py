"""Wire: a minimal client of PostgreSQL's protocol, to test whether a server answers.

It can also create a database. It is written by hand so that a server can be started without a
driver and without `psql`. It supports no password: settings.py asks for none.
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
TIMEOUT = 10.0


class ServerError(Exception):
    """The server answered with an error; `code` is its SQLSTATE."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code


class Session:
    """One short session. Raises `ServerError`, or OSError if the server does not answer."""

    def __init__(self, path: Path, database: str) -> None:
        self.parameters: dict[str, str] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.settimeout(TIMEOUT)
            self._socket.connect(str(path))
            parameters = f"user\0{SUPERUSER}\0database\0{database}\0\0".encode()
            self._socket.sendall(struct.pack("!ii", len(parameters) + 8, PROTOCOL) + parameters)
            self._read_until_ready()
        except BaseException:
            self._socket.close()
            raise

    def run(self, statement: str) -> None:
        message = statement.encode() + b"\0"
        self._socket.sendall(b"Q" + struct.pack("!i", len(message) + 4) + message)
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
                    raise _server_error(body)
                case b"S":
                    name, value, _ = body.decode().split("\0")
                    self.parameters[name] = value
                case b"R" if body != b"\0\0\0\0":
                    raise ServerError(
                        "28000",
                        "the server asks for a password",
                    )
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
        received = b""
        while len(received) < wanted:
            if not (chunk := self._socket.recv(wanted - len(received))):
                raise ConnectionResetError("the server closed the connection")
            received += chunk
        return received


def _server_error(body: bytes) -> ServerError:
    fields = {part[:1]: part[1:].decode(errors="replace") for part in body.split(b"\0") if part}
    return ServerError(fields.get(b"C", ""), fields.get(b"M", ""))
