"""A queue without a DSN in several event loops: one install, and no more connections."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from howdah import Queue
from howdah.store import install


class _AtOnce:
    """Counts what happens at the same time, in any thread."""

    def __init__(self) -> None:
        self.entered = self.now = self.most = 0
        self._mutex = threading.Lock()

    @contextmanager
    def __call__(self) -> Generator[None]:
        with self._mutex:
            self.entered += 1
            self.now += 1
            self.most = max(self.most, self.now)
        try:
            yield
        finally:
            with self._mutex:
                self.now -= 1


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> _AtOnce:
    """Count the connections that install, and make each last a moment."""
    counted = _AtOnce()
    original: Callable[[Any], Awaitable[bool]] = install.install

    async def slow_install(connection: Any) -> bool:
        with counted():
            await asyncio.sleep(0.05)
            return await original(connection)

    monkeypatch.setattr(install, "install", slow_install)
    return counted


def _close(queue: Queue) -> None:
    asyncio.run(queue.close())


def test_the_schema_is_installed_once_for_all_loops(home: Path, installs: _AtOnce) -> None:
    queue = Queue()
    for _ in range(3):
        asyncio.run(queue.enqueue("mail"))
    assert installs.entered == 1
    _close(queue)


def test_it_is_installed_again_after_the_queue_was_closed(home: Path, installs: _AtOnce) -> None:
    queue = Queue()

    async def drop_and_close() -> None:
        async with queue:
            await queue.store.fetch("drop schema howdah cascade")

    asyncio.run(drop_and_close())
    asyncio.run(queue.enqueue("mail"))
    assert installs.entered == 2
    _close(queue)


def test_loops_that_begin_at_once_stay_within_the_limit(home: Path, installs: _AtOnce) -> None:
    queue = Queue(connections=1)

    async def work() -> None:
        async with queue.store.acquire():
            with installs():
                await asyncio.sleep(0.01)

    threads = [threading.Thread(target=lambda: asyncio.run(work())) for _ in range(10)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 30
    for thread in threads:
        thread.join(deadline - time.monotonic())
        assert not thread.is_alive()
    assert installs.most <= 2, "twice as many as one loop may have"
    _close(queue)
