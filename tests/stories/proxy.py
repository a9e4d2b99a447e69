"""Proxy: stands between clients and a server, and fails in the ways networks do.

It understands as much of the wire protocol as it takes to know which statement a client sends
(link.py). So it can do what no cable does on purpose: let a statement arrive, be carried out and
committed, and lose the answer. Runs in a thread with an event loop of its own; everything here
may be called from any thread.
"""

from __future__ import annotations

import asyncio
import re
import threading
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Self

from tests.stories.link import Link


class Proxy:
    """A port for each server, that leads there more or less reliably."""

    def __init__(self, *server_ports: int) -> None:
        self.ports: list[int] = []  # one for each of the servers
        self._server_ports = server_ports
        self.held = False  # while true nothing passes, new connections included
        self.refusing = False  # while true nobody gets in
        self.keeping_ends = False  # while true clients hear a server's last words, not its end
        self.kept_ends = 0  # ends of which no client knows
        self.slow = 0.0  # seconds that every message takes on its way
        self.dropped = 0  # answers lost on purpose
        self._to_drop: re.Pattern[str] | None = None
        self._awaited: tuple[re.Pattern[str], threading.Event, list[int]] | None = None
        self._links: set[Link] = set()
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

    # ── what goes wrong ──

    def cut(self) -> int:
        """End every connection; returns how many there were."""
        return self._in_loop("cut")

    def half_open(self) -> int:
        """Leave every client with a connection on which nobody will ever answer."""
        return self._in_loop("lose_server")

    def drop_answer(self, pattern: str) -> None:
        """Lose the answer to the next statement that matches, and its connection with it."""
        self._to_drop = re.compile(pattern)

    def drop_none(self) -> None:
        self._to_drop = None

    @property
    def dropping(self) -> bool:
        """Whether the statement whose answer is to be lost has not come yet."""
        return self._to_drop is not None

    def wait_for(self, pattern: str, timeout: float) -> int | None:
        """Wait until somebody sends such a statement; returns the port it came from."""
        event, ports = threading.Event(), list[int]()
        self._awaited = (re.compile(pattern), event, ports)
        return ports[0] if event.wait(timeout) else None

    # ── what a link asks, inside the loop ──

    async def way(self) -> None:
        """Take as long as a message takes on its way."""
        if self.slow:
            await asyncio.sleep(self.slow)
        while self.held:
            await asyncio.sleep(0.01)

    def is_to_drop(self, sql: str, port: int) -> bool:
        """Hear which statement came from where; returns whether its answer is to be lost."""
        if self._awaited is not None and self._awaited[0].search(sql):
            (_, event, ports), self._awaited = self._awaited, None
            ports.append(port)
            event.set()
        if self._to_drop is None or not self._to_drop.search(sql):
            return False
        self._to_drop = None
        return True

    # ── life ──

    def _in_loop(self, verb: str) -> int:
        async def do() -> int:
            links = list(self._links)
            for link in links:
                getattr(link, verb)()
            return len(links)

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(10)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        doors: list[asyncio.Server] = []
        for port in self._server_ports:
            starting = asyncio.start_server(partial(self._connected, port), "127.0.0.1", 0)
            doors.append(self._loop.run_until_complete(starting))
        self.ports = [door.sockets[0].getsockname()[1] for door in doors]
        self._ready.set()
        self._loop.run_forever()
        for door in doors:
            door.close()
        for link in list(self._links):
            link.cut()
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _connected(
        self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with suppress(asyncio.CancelledError):  # only ever at the end
            try:
                await self.way()
                if self.refusing:
                    raise ConnectionRefusedError
                server = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            link = Link(self, (reader, writer), server)
            self._links.add(link)
            try:
                await link.run()
            finally:
                self._links.discard(link)
