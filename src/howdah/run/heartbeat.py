"""Heartbeat: say that this worker lives, from a thread of its own.

The thread has an event loop and a connection of its own, so a handler that blocks the
worker's loop for minutes does not make the worker look dead. Each beat also asks which of the
running attempts are no longer ours, and hands those back to the worker's loop.

A handler that holds the GIL stops this thread, too. Then a small process beats for it
(beat_process.py), and the thread says afterwards who may have held it.
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

from howdah.run.beat_process import BeatProcess
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import run as store_run

_log = log_named("howdah.beat")

NOTABLE = 1.0  # seconds: less than that may be a busy machine
TOLD = 3600.0  # seconds for which the doctor hears of it
LONG = timedelta(minutes=5)  # that a handler may hold the GIL before its worker is given up

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
        at_work: Callable[[float], list[str]] = lambda _: [],
        held_up_limit: timedelta = LONG,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._every = every.total_seconds()
        self._silent_after = silent_after
        self._info = info
        self._held = held
        self._lost = lost
        self._at_work = at_work  # names the types of attempts that took at least so many seconds
        self._held_up_limit = held_up_limit.total_seconds()
        self._held_up: dict[str, object] | None = None  # the last time that this thread was
        self._held_up_at = 0.0
        self._worker_loop = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._told_to_stop = False  # perhaps before the thread had a loop to hear it
        self._thread = threading.Thread(target=self._run, name="howdah-heartbeat", daemon=True)
        self._first_beat = asyncio.Event()
        self._gone = asyncio.Event()
        self.beaten_at: float | None = None  # time.monotonic() of the last beat that got through

    @property
    def held_up(self) -> dict[str, object] | None:
        """How long this thread could not run, and who may have held the GIL; within an hour."""
        return self._held_up if time.monotonic() - self._held_up_at < TOLD else None

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
        with suppress(TimeoutError):
            # not with asyncio.to_thread: handlers may have taken all its threads
            await asyncio.wait_for(self._gone.wait(), timeout=5)
            self._thread.join(1)  # it has nothing left to do

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_until_stopped())
        finally:
            self._on_worker_loop(self._gone.set)

    async def _beat_until_stopped(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        helper = BeatProcess(
            self._store,
            self._worker_id,
            every=self._every,
            silent_after=self._silent_after.total_seconds(),
            limit=self._held_up_limit,
        )
        try:
            await self._beat_beside(helper, self._stop)
        finally:
            helper.close()

    async def _beat_beside(self, helper: BeatProcess, stop: asyncio.Event) -> None:
        connection: asyncpg.Connection[Any] | None = None
        missed = 0  # beats in a row
        while not self._told_to_stop:
            helper.tell()
            began = time.monotonic()
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
            self._see_whether_held_up(time.monotonic() - began - self._patience, helper)
            helper.tell()
            began = time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), timeout=wait)
            self._see_whether_held_up(time.monotonic() - began - wait, helper)
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=1)

    async def _beat(self, connection: asyncpg.Connection[Any]) -> None:
        async with asyncio.timeout(self._patience):
            lost = await store_run.beat(
                connection, self._worker_id, self._held(), self._silent_after, self._info()
            )
        if lost:
            self._on_worker_loop(self._lost, lost)

    @property
    def _patience(self) -> float:
        """Seconds that a beat may take."""
        return max(self._every * 2, 2.0)

    def _see_whether_held_up(self, late: float, helper: BeatProcess) -> None:
        """Say who may have kept this thread from running, if it comes so many seconds late."""
        if late < max(self._silent_after.total_seconds() / 2, NOTABLE):
            return
        types = self._at_work(late * 0.8)
        self._held_up = {"seconds": round(late, 1), "types": types}
        self._held_up_at = time.monotonic()
        _log.warning(
            "beat.held_up worker=%s seconds=%.1f types=%s helper=%s: no thread of this process "
            "could run; one of these held the GIL, or the process was stopped",
            self._worker_id,
            late,
            ",".join(types) or "none",
            helper.said() or "beat",
        )

    def _on_worker_loop(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the worker is gone
            self._worker_loop.call_soon_threadsafe(function, *args)
