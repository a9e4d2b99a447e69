"""Link: one client's connection through the proxy, and the server connection that belongs to it.

Messages are read whole in both directions. From the client's we learn which statement is sent:
by its text (`Query`), or by the name under which it was prepared (`Parse`, then `Bind`). When the
answer to a statement is to be lost, nothing of it is passed on; the server's `ReadyForQuery` tells
that it is done and committed, and then the connection ends.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.stories.proxy import Proxy

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]

ASKS_FOR_ENCRYPTION = (80877103, 80877104)


class Link:
    """Passes messages on, both ways, until one side ends."""

    def __init__(self, proxy: Proxy, client: Ends, server: Ends) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._port: int = self._to_client.get_extra_info("peername")[1]
        self._prepared: dict[bytes, str] = {}
        self._losing = False  # the answer that comes now is not passed on
        self._silent = False  # the server is gone, and the client must not know

    def cut(self) -> None:
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    def lose_server(self) -> None:
        self._silent = True
        self._to_server.transport.abort()

    async def run(self) -> None:
        down = asyncio.ensure_future(self._down())
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._up()
        finally:
            down.cancel()
            with suppress(asyncio.CancelledError):
                await down
            self.cut()

    async def _up(self) -> None:
        """Pass on what the client says, until it ends."""
        while True:
            opening = await self._opening()
            if int.from_bytes(opening[4:8]) not in ASKS_FOR_ENCRYPTION:
                break
            self._to_client.write(b"N")
        await self._pass_up(opening)
        while True:
            kind, body, raw = await _message(self._from_client)
            self._understand(kind, body)
            await self._pass_up(raw)

    async def _pass_up(self, raw: bytes) -> None:
        await self._proxy.way()
        if not self._silent and not self._to_server.is_closing():
            self._to_server.write(raw)
            with suppress(OSError):  # the other direction notices, and tells the client
                await self._to_server.drain()

    async def _down(self) -> None:
        """Pass on what the server says, until it ends; then the client's side ends too."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                kind, _, raw = await _message(self._from_server)
                await self._proxy.way()
                if self._losing and kind == b"Z":
                    self._proxy.dropped += 1
                    break
                if self._to_client.is_closing():
                    break
                if not self._losing and not self._silent:
                    self._to_client.write(raw)
                    await self._to_client.drain()
        if self._proxy.keeping_ends:
            self._proxy.kept_ends += 1
        elif not self._silent:
            self.cut()

    def _understand(self, kind: bytes, body: bytes) -> None:
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
        self._losing = self._losing or self._proxy.is_to_drop(sql, self._port)

    async def _opening(self) -> bytes:
        """Read a message that begins a connection: it has no type."""
        size = await self._from_client.readexactly(4)
        return size + await self._from_client.readexactly(int.from_bytes(size) - 4)


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes, bytes]:
    head = await reader.readexactly(5)
    body = await reader.readexactly(int.from_bytes(head[1:]) - 4)
    return head[:1], body, head + body
