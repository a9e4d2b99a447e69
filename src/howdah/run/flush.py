"""Flusher: write what running jobs report, several times a second.

It marks attempts as running that have run for a while, and it sends progress and events
(reports.py). The settler flushes, too, before it writes endings. When jobs change in the database
that run here, the flusher checks at once whether their leases are still valid.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

from howdah.errors import HowdahError
from howdah.growing_pause import GrowingPause
from howdah.in_hand import InHand, LeaseKey
from howdah.job import Claim
from howdah.run.executor import Attempt, Executor
from howdah.run.reports import Reports
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import run as store_run
from howdah.store.batches import write_in_parts
from howdah.store.errors import transient
from howdah.text.reasons import describe

_log = log_named("howdah.worker")

FLUSH = 0.2  # seconds between two flushes


class Flusher:
    """Writes the reports of one worker's jobs, and which of them run."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        in_hand: InHand[Attempt],
        executor: Executor,
        reports: Reports,
        silent_after: timedelta,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._in_hand = in_hand
        self._executor = executor
        self._reports = reports
        self._silent_after = silent_after
        self._check_now = asyncio.Event()
        self._lock = asyncio.Lock()
        self._marking = asyncio.Lock()

    def check_leases(self, changed: list[UUID]) -> None:
        """Check our leases soon if one of these jobs runs here."""
        if any(id in self._in_hand.running for id in changed):
            self._check_now.set()

    async def flush(self) -> dict[LeaseKey, str]:
        """Send the collected reports; returns why events of some attempts could not be stored."""
        if self._reports or self._lock.locked():
            async with self._lock:
                self._executor.lose(await self._reports.flush(self._store, self._worker_id))
        return self._reports.refused

    async def flush_before_completion(self) -> dict[LeaseKey, str]:
        """Flush, and wait until no statement is under way that writes to running jobs.

        For a job whose row the transaction of its handler is about to lock: a statement of ours
        would wait for that transaction, and with it the reports and endings of all other jobs.
        """
        async with self._marking, self._lock:
            self._executor.lose(await self._reports.flush(self._store, self._worker_id))
        return self._reports.refused

    async def run(self) -> None:
        """Flush for as long as the worker lives."""
        pause = GrowingPause(1.0, 5.0, self._store.reachable)
        while True:
            check = False
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH):
                    await self._check_now.wait()
                    check = True
            self._check_now.clear()
            try:
                if unmarked := self._executor.not_started(FLUSH / 2):
                    async with self._marking:
                        await self._mark_as_running(unmarked)
                await self.flush()
                if check:
                    self._executor.lose(await self._lost())
                pause.reset()
            except HowdahError as error:
                if not transient(error):
                    raise
                seconds = pause.next()
                _log.warning("flush.waiting retry_in=%.1fs error=%s", seconds, error)
                await self._store.reachable.wait(seconds)

    async def _mark_as_running(self, unmarked: list[tuple[Claim, float]]) -> None:
        """Mark attempts as running; one that cannot be marked runs all the same."""

        async def refused(attempt: tuple[Claim, float], error: Exception) -> None:
            _log.error("start.refused id=%s error=%s", attempt[0].id, describe(error))

        await write_in_parts(
            unmarked,
            partial(store_run.start, self._store, self._worker_id),
            lambda _part, _ids: None,
            refused,
        )

    async def _lost(self) -> set[LeaseKey]:
        leases = self._in_hand.running_leases()
        async with self._store.acquire() as connection:
            ids = await store_run.beat(
                connection, self._worker_id, leases, self._silent_after, None
            )
        return {lease for lease in leases if lease[0] in ids}
