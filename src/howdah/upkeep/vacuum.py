"""Vacuum: ask for a VACUUM of jobs_live when many of its rows are dead.

Comes after  upkeep.py  whose rounds call it; one worker at a time does a round

The server's autovacuum comes once a minute at most (autovacuum_naptime). In a minute a busy queue
leaves a million dead rows, and their space cannot be used again before a VACUUM. So the table grows
to hundreds of megabytes for a few live jobs. It also stays so large, because only after a VACUUM
new rows go to the front again.

A VACUUM runs beside the upkeep, which goes on. While an old transaction is open it removes little,
so it may take a smaller part of the time. A worker that may not vacuum leaves it to autovacuum.
"""

from __future__ import annotations

import asyncio
import math
import time

from howdah.errors import HowdahError
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import upkeep as store_upkeep
from howdah.store.upkeep import LiveTable

_log = log_named("howdah.upkeep")

DEAD_ROWS = 20_000  # from so many on: about 6 MB
SHARE = 0.5  # the part of the time that it may take: many short ones cost no more than a long one
HELD_SHARE = 0.02  # the same while the last one removed little
LARGE = 64_000_000  # bytes from which on the empty end of the table is returned to the disk
TRUNCATE_EVERY = 10.0  # seconds; while VACUUM waits to truncate, no other one can run
RIGHTS = 60.0  # seconds until a worker that may not vacuum asks again whether it may


class Vacuum:
    """Vacuums jobs_live for one worker, one time after another."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._not_before = 0.0
        self._truncate_at = 0.0
        self._waits_for: int | None = None  # the oldest snapshot when the last one removed little
        self.tasks: list[asyncio.Task[None]] = []  # the VACUUM that runs now, if one does

    async def start_if_due(self) -> None:
        """Start a VACUUM if enough rows are dead, and the last one is long enough ago."""
        if self.tasks or (time.monotonic() < self._not_before and self._waits_for is None):
            return
        table = await store_upkeep.live_table(self._store)
        if self._waits_for is not None and table is not None and not self._may_help(table):
            return
        if table is None:  # this worker may not vacuum
            self._not_before = time.monotonic() + RIGHTS
        elif table.dead_rows >= DEAD_ROWS:
            self.tasks.append(asyncio.create_task(self._run(table), name="howdah-vacuum"))

    def _may_help(self, table: LiveTable) -> bool:
        """Whether it is time again, or the transaction that held the dead rows has ended."""
        if time.monotonic() >= self._not_before:
            return True
        return table.oldest_snapshot is not None and table.oldest_snapshot > (self._waits_for or 0)

    async def stop(self) -> None:
        """End the VACUUM that runs now: what it has done so far stays done."""
        tasks, self.tasks = self.tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, before: LiveTable) -> None:
        began = time.monotonic()
        truncate = before.bytes > LARGE and began >= self._truncate_at
        try:
            await store_upkeep.vacuum(self._store, truncate=truncate)
            after = await store_upkeep.live_table(self._store)
        except HowdahError as error:
            after = None
            _log.warning("upkeep.vacuum_failed error=%s", error)
        finally:
            self.tasks.clear()
        now = time.monotonic()
        helped = after is not None and after.dead_rows < before.dead_rows / 2
        # one that truncates takes long because it waits, and the next one is due by then
        share = HELD_SHARE if not helped else math.inf if truncate else SHARE
        self._not_before = now + (now - began) / share
        # wait for a transaction only once: something else, such as a replica, may hold the rows
        waited = self._waits_for is not None
        self._waits_for = None if helped or waited or after is None else after.oldest_snapshot
        if truncate:
            self._truncate_at = now + TRUNCATE_EVERY
