"""Proxy connection: one client's connection through the proxy, and its connection to the server.

Whole messages are read in both directions. The client's messages say which statement it sends: by
its text (`Query`), or by the name under which it was prepared (`Parse`, then `Bind`). To lose an
answer, the proxy passes none of it on. The server's `ReadyForQuery` means that the statement is
committed; then the proxy closes the connection.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.proxy import Proxy

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

ENCRYPTION_REQUESTS = (80877103, 80877104)


class ProxyConnection:
    """Passes messages on, in both directions, until one side closes."""

    def __init__(self, proxy: Proxy, client: Streams, server: Streams) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._port: int = self._to_client.get_extra_info("peername")[1]
        self._prepared: dict[bytes, str] = {}
        self._losing = False  # the current answer is not passed on
        self._silent = False  # the server's side is closed, and the client must not notice

    def cut(self) -> None:
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    def lose_server(self) -> None:
        self._silent = True
        self._to_server.transport.abort()

    async def run(self) -> None:
        to_client = asyncio.ensure_future(self._to_client_loop())
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._to_server_loop()
        finally:
            to_client.cancel()
            with suppress(asyncio.CancelledError):
                await to_client
            self.cut()

    async def _to_server_loop(self) -> None:
        """Pass on the client's messages until it closes."""
        while True:
            startup = await self._startup_message()
            if int.from_bytes(startup[4:8]) not in ENCRYPTION_REQUESTS:
                break
            self._to_client.write(b"N")
        await self._pass_to_server(startup)
        while True:
            kind, body, raw = await _message(self._from_client)
            self._read_statement(kind, body)
            await self._pass_to_server(raw)

    async def _pass_to_server(self, raw: bytes) -> None:
        await self._proxy.delay()
        if not self._silent and not self._to_server.is_closing():
            self._to_server.write(raw)
            with suppress(OSError):  # the other direction notices, and closes the client's side
                await self._to_server.drain()

    async def _to_client_loop(self) -> None:
        """Pass on the server's messages until it closes; then close the client's side."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, _, raw = await _message(self._from_server)
                await self._proxy.delay()
                if self._losing and kind == b"Z":
                    self._proxy.dropped += 1
                    break
                if self._to_client.is_closing():
                    break
                if not self._losing and not self._silent:
                    self._to_client.write(raw)
                    await self._to_client.drain()
        if self._proxy.hiding_close:
            self._proxy.hidden_closes += 1
        elif not self._silent:
            self.cut()

    def _read_statement(self, kind: bytes, body: bytes) -> None:
        if kind == b"P":
            name, sql, _ = body.split(b"\0", 2)
            self._prepared[name] = sql.decode(errors="replace")
            return
        if kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            sql = self._prepared.get(name, "")
        elif kind == b"Q":
            sql = body.rstrip(b"\0").decode(errors="replace")
        else:
            return
        self._losing = self._losing or self._proxy.should_drop(sql, self._port)

    async def _startup_message(self) -> bytes:
        """Read the first message of a connection: it has no type byte."""
        size = await self._from_client.readexactly(4)
        return size + await self._from_client.readexactly(int.from_bytes(size) - 4)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes, bytes]:
    head = await reader.readexactly(5)
    body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
    return head[:1], body, head + body
