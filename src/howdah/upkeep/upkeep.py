"""Upkeep: expire, promote, fire, admit, recover and prune; any worker does it, one at a time.

In SQL  sql/70_upkeep/, sql/35_admit/

There is no leader. The worker that asks first does a round, in one transaction; the others get
nothing to do. A round reports when the next scheduled job or the next schedule is due, and idle
workers hear of those that are added meanwhile (next_due.py). So each job joins the line at its
time, and not one polling interval late. A worker that was cut off from the database recovers
nobody's jobs until the other workers have had time to send beats again.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from datetime import timedelta

from howdah.errors import HowdahError
from howdah.growing_pause import GrowingPause
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import upkeep as store_upkeep
from howdah.store.errors import transient
from howdah.upkeep.firing import fire_due
from howdah.upkeep.next_due import NextDue
from howdah.upkeep.vacuum import Vacuum

_log = log_named("howdah.upkeep")

_PRUNE_EVERY = 600.0
_MOST_PROMOTED = 1000  # jobs that one round promotes at most
_MOST_EXPIRED = 10_000  # jobs that one round cancels at most
_LOOK_AGAIN = 0.02  # seconds to wait while another session admits jobs
_GATHER = 0.02  # seconds between promotions: jobs that are due one after another go together
_MOST_PATIENT = 1.0  # seconds to wait at most for schedules that another session has locked


class Upkeep:
    """The upkeep of one worker."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        *,
        every: timedelta,
        stale_after: timedelta,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._every = every.total_seconds()
        self._stale_after = stale_after
        self._prune_due = 0.0
        self._due = NextDue(worker_id)
        self._vacuum = Vacuum(store)
        self._due_changed = asyncio.Event()
        self._round_at = 0.0
        self._not_before = 0.0
        self._admitted_as_of: str | None = None
        self._admit_at: float | None = None  # when there is something to admit again
        self._fired_in_vain = 0  # times in a row that a due schedule could not be fired

    def received(self, message: str) -> None:
        """Take a message about scheduled jobs: see next_due.py."""
        self._due.received(message, time.monotonic())
        self._due_changed.set()

    async def step(self) -> float:
        """Do one round; returns the seconds until the next check."""
        now = time.monotonic()
        if now >= self._prune_due:
            self._prune_due = now + _PRUNE_EVERY
            for name in await store_upkeep.prune(self._store):
                _log.info("upkeep.pruned partition=%s", name)
        self._due.begin_check()
        result = await store_upkeep.upkeep(self._store, self._stale_after, self._worker_id)
        now = time.monotonic()
        self._round_at = now + self._jittered()
        if result is None:
            self._due.other_is_checking(now)
            return self._wait()
        if result.expired:
            _log.info("job.expired jobs=%d", result.expired)
        if result.recovered or result.failed:
            _log.warning(
                "job.recovered pending=%d failed=%d silent_workers=%s",
                result.recovered,
                result.failed,
                ",".join(result.silent_workers),
            )
        self._checked(result.promoted, result.next_due_in)
        self._look_after(result.next_look)
        if result.expired >= _MOST_EXPIRED:  # there may be more: go on at once
            self._round_at = now
        await self._vacuum.start_if_due()
        if result.schedules_due:
            return await self._fire()
        return self._wait()

    async def promote(self) -> float:
        """Promote the jobs that are due now; returns the seconds until the next check."""
        self._due.begin_check()
        self._admit_at = None
        since, self._admitted_as_of = self._admitted_as_of, None  # after an error: from the start
        result = await store_upkeep.promote_due(self._store, self._worker_id, since)
        if result is None:
            self._admitted_as_of = since
            self._due.other_is_checking(time.monotonic())
        else:
            self._checked(result.promoted, result.next_due_in)
            self._looked(result, since)
            if result.schedules_due:
                return await self._fire()
        return self._wait()

    async def _fire(self) -> float:
        """Fire the schedules that are due; returns the seconds until the next check."""
        if await fire_due(self._store):
            self._fired_in_vain = 0
            return 0.0  # ask at once when the next one is due
        wait = min(_GATHER * 2**self._fired_in_vain, _MOST_PATIENT)
        self._fired_in_vain = min(self._fired_in_vain + 1, 10)
        self._not_before = time.monotonic() + wait
        return self._wait()

    def _looked(self, result: store_upkeep.Promoted, since: str | None) -> None:
        """Note when to admit jobs again: at once, later, or when a producer asks for it."""
        if result.as_of is None:  # another session admits: look a moment later
            self._admitted_as_of = since
            self._admit_at = time.monotonic() + _LOOK_AGAIN
        else:
            self._admitted_as_of = result.as_of
            self._look_after(result.next_look)

    def _look_after(self, wait: timedelta | None) -> None:
        if wait is not None:
            at = time.monotonic() + wait.total_seconds()
            self._admit_at = at if self._admit_at is None else min(self._admit_at, at)

    def _checked(self, promoted: int, next_due_in: timedelta | None) -> None:
        now = time.monotonic()
        self._due.checked(None if next_due_in is None else next_due_in.total_seconds(), now)
        self._not_before = now + (_GATHER if promoted < _MOST_PROMOTED else 0.0)

    def _wait(self) -> float:
        at = self._round_at if self._due.at is None else min(self._round_at, self._due.at)
        at = max(at, self._not_before)
        return (at if self._admit_at is None else min(at, self._admit_at)) - time.monotonic()

    async def run(self) -> None:
        try:
            await self._run()
        finally:
            await self._vacuum.stop()

    async def _run(self) -> None:
        pause = GrowingPause(1.0, 5.0, self._store.reachable)
        while True:
            try:
                is_round_due = time.monotonic() >= self._round_at
                wait = await (self.step() if is_round_due else self.promote())
                pause.reset()
            except HowdahError as error:
                if not transient(error):
                    raise
                wait = pause.next()
                _log.warning("upkeep.waiting retry_in=%.1fs error=%s", wait, error)
                await self._store.reachable.wait(wait)
                continue
            while wait > 0:
                self._due_changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._due_changed.wait()
                wait = self._wait()

    def _jittered(self) -> float:
        return self._every * random.uniform(0.8, 1.2)  # noqa: S311 - only spreads the workers
