"""Proxy: passes messages between clients and a server, and can fail as a network does.

It reads enough of the wire protocol to know which statement a client sends (proxy_connection.py).
So it can let a statement be executed and committed, and then lose the answer. It runs in a thread
with an event loop of its own. Its public methods may be called from any thread.
"""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from tests.support.proxy_connection import ProxyConnection


class Proxy:
    """Listens on one port for each server."""

    def __init__(self, *server_ports: int) -> None:
        self.ports: list[int] = []  # one for each server
        self._server_ports = server_ports
        self.held = False  # while true, no message passes, and no new connection is made
        self.refusing = False  # while true, new connections are refused
        self.hiding_close = False  # while true, clients do not see that the server closed
        self.hidden_closes = 0  # connections whose close was hidden
        self.slow = 0.0  # seconds by which every message is delayed
        self.dropped = 0  # answers lost on purpose
        self._to_drop: re.Pattern[str] | None = None
        self._awaited: tuple[re.Pattern[str], threading.Event, list[int]] | None = None
        self._connections: set[ProxyConnection] = set()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10), "the proxy did not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.held = False
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # ── faults ──

    def cut(self) -> int:
        """End every connection; returns how many there were."""
        return self._for_each("cut")

    def half_open(self) -> int:
        """Close every connection to the server, and let the clients believe that it is open."""
        return self._for_each("lose_server")

    def drop_answer(self, pattern: str) -> None:
        """Lose the answer to the next statement that matches, and then its connection."""
        self._to_drop = re.compile(pattern)

    def drop_none(self) -> None:
        self._to_drop = None

    @property
    def dropping(self) -> bool:
        """Whether the statement whose answer will be lost has not been sent yet."""
        return self._to_drop is not None

    def wait_for(self, pattern: str, timeout: float) -> int | None:
        """Wait until a client sends such a statement; returns the client's port."""
        event, ports = threading.Event(), list[int]()
        self._awaited = (re.compile(pattern), event, ports)
        return ports[0] if event.wait(timeout) else None

    # ── called by a proxy connection, inside the loop ──

    async def delay(self) -> None:
        """Wait as long as a message is delayed."""
        if self.slow:
            await asyncio.sleep(self.slow)
        while self.held:
            await asyncio.sleep(0.01)

    def should_drop(self, sql: str, port: int) -> bool:
        """Note a statement and its client's port; returns whether to lose its answer."""
        if self._awaited is not None and self._awaited[0].search(sql):
            (_, event, ports), self._awaited = self._awaited, None
            ports.append(port)
            event.set()
        if self._to_drop is None or not self._to_drop.search(sql):
            return False
        self._to_drop = None
        return True

    # ── inside ──

    def _for_each(self, method: str) -> int:
        async def do() -> int:
            connections = list(self._connections)
            for connection in connections:
                getattr(connection, method)()
            return len(connections)

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        listeners: list[asyncio.Server] = []
        for port in self._server_ports:
            starting = asyncio.start_server(partial(self._connected, port), "127.0.0.1", 0)
            listeners.append(self._loop.run_until_complete(starting))
        self.ports = [listener.sockets[0].getsockname()[1] for listener in listeners]
        self._ready.set()
        self._loop.run_forever()
        for listener in listeners:
            listener.close()
        for connection in list(self._connections):
            connection.cut()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.close()

    async def _connected(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(asyncio.CancelledError):  # only when the proxy stops
            try:
                await self.delay()
                if self.refusing:
                    raise ConnectionRefusedError
                server = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            connection = ProxyConnection(self, (reader, writer), server)
            self._connections.add(connection)
            try:
                await connection.run()
            finally:
                self._connections.discard(connection)
