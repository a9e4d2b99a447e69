"""Heartbeat: tell the database that this worker is alive, from a thread of its own.

The thread has its own event loop and its own connection, so a handler that blocks the worker's loop
for minutes does not make the worker look dead. Each beat also asks which of the running attempts
are no longer ours, and reports those to the worker's loop.

A handler that holds the GIL stops this thread, too. Then a small process beats for it
(beat_process.py). Afterwards the thread logs which handlers may have held the GIL.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING

from howdah.in_hand import LeaseKey
from howdah.run.beat_process import BeatProcess
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import run as store_run

if TYPE_CHECKING:
    from howdah.store.store import Connection

_log = log_named("howdah.beat")

RETRY = 0.25  # seconds after a failed beat; its first success ends the pauses of the other parts
NOTABLE = 1.0  # seconds: a shorter delay may come from a busy machine
REPORTED_FOR = 3600.0  # seconds for which the worker's row says that it was held up
LONGEST = timedelta(minutes=5)  # that a handler may hold the GIL before its jobs are recovered

Leases = Callable[[], list[LeaseKey]]


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
        leases: Leases,
        on_lost: Callable[[set[LeaseKey]], None],
        types_at_work: Callable[[float], list[str]] = lambda _: [],
        held_up_limit: timedelta = LONGEST,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._every = every.total_seconds()
        self._silent_after = silent_after
        self._info = info
        self._leases = leases  # of the running attempts
        self._on_lost = on_lost
        self._types_at_work = types_at_work  # of attempts that took at least so many seconds
        self._held_up_limit = held_up_limit.total_seconds()
        self._held_up: dict[str, object] | None = None  # the last time that it was held up
        self._held_up_at = 0.0
        self._worker_loop = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._awake: asyncio.Event | None = None  # set when the pause between two beats ends early
        self._stop_asked = False  # may be set before the thread has an event loop
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="howdah-heartbeat", daemon=True)
        self._first_beat = asyncio.Event()
        self._gone = asyncio.Event()
        self.beaten_at: float | None = None  # time.monotonic() of the last successful beat

    @property
    def held_up(self) -> dict[str, object] | None:
        """How long this thread could not run, and which types may be the cause; for an hour."""
        return self._held_up if time.monotonic() - self._held_up_at < REPORTED_FOR else None

    async def start(self) -> None:
        """Start the thread and wait for the first beat: nothing is claimed before it."""
        self._thread.start()
        await self._first_beat.wait()

    async def stop(self) -> None:
        if self._thread.ident is None:
            return  # the thread was never started
        self._stop_asked = True
        if self._loop is not None and self._awake is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._awake.set)
        with suppress(TimeoutError):
            # not with asyncio.to_thread: handlers may use all its threads
            await asyncio.wait_for(self._gone.wait(), timeout=5)
            self._thread.join(1)  # it has nothing left to do

    def _run(self) -> None:
        try:
            asyncio.run(self._beat_until_stopped())
        finally:
            self._on_worker_loop(self._gone.set)

    async def _beat_until_stopped(self) -> None:
        self._loop, self._awake = asyncio.get_running_loop(), asyncio.Event()
        helper = BeatProcess(
            self._store,
            self._worker_id,
            every=self._every,
            silent_after=self._silent_after.total_seconds(),
            limit=self._held_up_limit,
        )
        try:
            await self._beat_with(helper, self._awake)
        finally:
            helper.close()

    async def _beat_with(self, helper: BeatProcess, awake: asyncio.Event) -> None:
        missed = 0  # beats in a row
        while not self._stop_asked:
            helper.ping()
            began = time.monotonic()
            try:
                if self._connection is None or self._connection.is_closed():
                    self._connection = await self._store.connect()
                    self._connection.add_termination_listener(self._lost)
                await self._beat(self._connection)
                self.beaten_at = time.monotonic()
                self._on_worker_loop(self._first_beat.set)
                if missed:
                    self._store.reachable.announce()
                wait, missed = self._every, 0
            except Exception as error:  # a worker must go on beating, whatever the error is
                missed += 1
                if missed & (missed - 1) == 0:  # log the 1st, 2nd, 4th, 8th … miss
                    _log.warning(
                        "beat.failed worker=%s missed=%d error=%s", self._worker_id, missed, error
                    )
                connection, self._connection = self._connection, None
                if connection is not None:
                    connection.terminate()
                wait = min(self._every, RETRY)
            self._note_delay(time.monotonic() - began - self._beat_timeout, helper)
            helper.ping()
            began = time.monotonic()
            with suppress(TimeoutError):
                await asyncio.wait_for(awake.wait(), timeout=wait)
            awake.clear()
            self._note_delay(time.monotonic() - began - wait, helper)
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                await connection.close(timeout=1)

    def _lost(self, connection: object) -> None:
        """Beat at once when the server closes our connection, to find out when it is back."""
        if connection is self._connection and self._awake is not None:
            self._awake.set()

    async def _beat(self, connection: Connection) -> None:
        leases = self._leases()
        async with asyncio.timeout(self._beat_timeout):
            ids = await store_run.beat(
                connection, self._worker_id, leases, self._silent_after, self._info()
            )
        if lost := {lease for lease in leases if lease[0] in ids}:
            self._on_worker_loop(self._on_lost, lost)

    @property
    def _beat_timeout(self) -> float:
        """Seconds that a beat may take."""
        return max(self._every * 2, 2.0)

    def _note_delay(self, late: float, helper: BeatProcess) -> None:
        """Log which types may have stopped this thread, if it is so many seconds late."""
        if late < max(self._silent_after.total_seconds() / 2, NOTABLE):
            return
        types = self._types_at_work(late * 0.8)
        self._held_up = {"seconds": round(late, 1), "types": types}
        self._held_up_at = time.monotonic()
        _log.warning(
            "beat.held_up worker=%s seconds=%.1f types=%s helper=%s: no thread of this process "
            "could run; one of these held the GIL, or the process was stopped",
            self._worker_id,
            late,
            ",".join(types) or "none",
            helper.last_error() or "beat",
        )

    def _on_worker_loop(self, function: Callable[..., object], *args: object) -> None:
        with suppress(RuntimeError):  # the loop is closed: the worker has stopped
            self._worker_loop.call_soon_threadsafe(function, *args)
