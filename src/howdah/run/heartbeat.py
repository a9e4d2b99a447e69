"""Heartbeat: say that this worker lives, from a thread that no handler can stop.

The thread has an event loop and a connection of its own, so a handler that blocks the
worker's loop for minutes does not make the worker look dead. Each beat also asks which of the
running attempts are no longer ours, and hands those back to the worker's loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg

from howdah.logs import log_named
from howdah.store import Store, call

_log = log_named("howdah.beat")

Held = Callable[[], list[tuple[UUID, int]]]


class Heartbeat:
    """Beats until it is stopped."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        *,
        every: timedelta,
        silent_after: timedelta,
        info: Callable[[], str],
        held: Held,
        lost: Callable[[set[UUID]], None],
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._every = every.total_seconds()
        self._silent_after = silent_after
        self._info = info
        self._held = held
        self._lost = lost
        self._worker_loop = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._told_to_stop = False  # perhaps before the thread had a loop to hear it
        self._thread = threading.Thread(target=self._run, name="howdah-heartbeat", daemon=True)
        self._first_beat = asyncio.Event()
        self.beaten_at: float | None = None  # time.monotonic() of the last beat that got through

    async def start(self) -> None:
        """Start the thread and wait for the first beat: nothing is claimed before it."""
        self._thread.start()
        await self._first_beat.wait()

    async def stop(self) -> None:
        if self._thread.ident is None:
            return  # it never began
        self._told_to_stop = True
        if self._loop is not None and self._stop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, 5)

    def _run(self) -> None:
        asyncio.run(self._beat_until_stopped())

    async def _beat_until_stopped(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        connection: asyncpg.Connection[Any] | None = None
        missed = 0  # beats in a row
        while not self._told_to_stop:
            try:
                if connection is None or connection.is_closed():
                    connection = await self._store.connect()
                await self._beat(connection)
                self.beaten_at = time.monotonic()
                self._on_worker_loop(self._first_beat.set)
                wait, missed = self._every, 0
            except Exception as error:  # whatever it is, a worker without a beat is worse
                missed += 1
                if missed & (missed - 1) == 0:  # more and more seldom: 1, 2, 4, 8 …
                    _log.warning(
                        "beat.failed worker=%s missed=%d error=%s", self._worker_id, missed, error
                    )
                if connection is not None:
                    connection.terminate()
                connection = None
                wait = min(self._every, 1.0)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), timeout=wait)
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=1)

    async def _beat(self, connection: asyncpg.Connection[Any]) -> None:
        async with asyncio.timeout(max(self._every * 2, 2.0)):
            lost = await call.beat(
                connection, self._worker_id, self._held(), self._silent_after, self._info()
            )
        if lost:
            self._on_worker_loop(self._lost, lost)

    def _on_worker_loop(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the worker is gone
            self._worker_loop.call_soon_threadsafe(function, *args)
