"""Viewers: browsers with an open page of the dashboard, each with its own event stream."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

from bench.driver_process import DriverFailed

TIMEOUT = 120.0


class Viewers:
    """Open event streams, read in a thread."""

    def __init__(self, url: str, token: str, pages: Sequence[str]) -> None:
        self._url = urlsplit(url)
        self._token = token
        self.updates: list[int] = [0] * len(pages)
        self._pages = pages

    def wait_for_updates(self, pages: int = 1) -> None:
        """Wait until so many pages have been updated."""
        deadline = time.monotonic() + TIMEOUT
        while sum(map(bool, self.updates)) < pages:
            if time.monotonic() > deadline:
                raise DriverFailed(f"updates of the {len(self._pages)} open pages: {self.updates}")
            time.sleep(0.01)

    async def read_all(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, page in enumerate(self._pages):
                group.create_task(self._read(number, page))

    async def _read(self, number: int, page: str) -> None:
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
                    self.updates[number] += 1
        finally:
            writer.close()


@contextmanager
def viewers(url: str, token: str, pages: Sequence[str]) -> Generator[Viewers]:
    """Keep these pages open until the end of the block."""
    opened = Viewers(url, token, pages)
    loop = asyncio.new_event_loop()
    task = loop.create_task(opened.read_all())

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
        yield opened
    finally:
        if not loop.is_closed():
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
