"""Viewers: people who leave pages of the dashboard open, each with a stream of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

from bench.process import Broken

PATIENCE = 120.0


class Viewers:
    """Open streams, read in a thread."""

    def __init__(self, url: str, token: str, pages: Sequence[str]) -> None:
        self._url = urlsplit(url)
        self._token = token
        self.drawings: list[int] = [0] * len(pages)
        self._pages = pages

    def wait_until_drawn(self, pages: int = 1) -> None:
        """Wait until so many pages were drawn anew."""
        until = time.monotonic() + PATIENCE
        while sum(map(bool, self.drawings)) < pages:
            if time.monotonic() > until:
                raise Broken(f"of {len(self._pages)} pages {self.drawings} drawings came")
            time.sleep(0.01)

    async def look(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, page in enumerate(self._pages):
                group.create_task(self._look_at(number, page))

    async def _look_at(self, number: int, page: str) -> None:
        reader, writer = await asyncio.open_connection(
            self._url.hostname, self._url.port, limit=2**24
        )
        writer.write(
            f"GET /live?page={quote(page, safe='')} HTTP/1.1\r\nHost: {self._url.netloc}\r\n"
            f"Authorization: Bearer {self._token}\r\n\r\n".encode()
        )
        try:
            while line := await reader.readline():
                if line.strip() == b"event: draw":
                    self.drawings[number] += 1
        finally:
            writer.close()


@contextmanager
def viewers(url: str, token: str, pages: Sequence[str]) -> Generator[Viewers]:
    """Let somebody look at each of these pages for as long as the block lasts."""
    looking = Viewers(url, token, pages)
    loop = asyncio.new_event_loop()
    task = loop.create_task(looking.look())

    def run() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.close()

    thread = threading.Thread(target=run, name="viewers")
    thread.start()
    try:
        yield looking
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
