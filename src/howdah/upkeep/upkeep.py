"""Upkeep: promote, recover, prune; any worker does it, one at a time.

In SQL  sql/70_upkeep/

There is no leader to die: whoever asks first does a round, in one transaction, and the others
get nothing to do. A round says when the next waiting job is due, and idle workers are told of jobs
that come meanwhile (see next_due), so that each is let into the line on time and not a polling
interval late. A worker that was itself cut off judges nobody by
their silence until the others have had time to come back, too.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from datetime import timedelta

from howdah.errors import HowdahError
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import upkeep as store_upkeep
from howdah.store.errors import transient
from howdah.upkeep.next_due import NextDue

_log = log_named("howdah.upkeep")

_PRUNE_EVERY = 600.0
_AT_ONCE = 1000  # how many jobs one round promotes at most
_GATHER = 0.02  # seconds: where jobs become due one after another, a few at a time


class Upkeep:
    """One worker's share in the upkeep."""

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
        self._news = asyncio.Event()  # the time to look may have changed
        self._round_at = 0.0
        self._not_before = 0.0

    def heard(self, message: str) -> None:
        """Be told of waiting jobs: see next_due."""
        self._due.heard(message, time.monotonic())
        self._news.set()

    async def step(self) -> float:
        """Do one round; returns how many seconds the next look can wait."""
        now = time.monotonic()
        if now >= self._prune_due:
            self._prune_due = now + _PRUNE_EVERY
            for name in await store_upkeep.prune(self._store):
                _log.info("upkeep.pruned partition=%s", name)
        self._due.looking()
        kept = await store_upkeep.upkeep(self._store, self._stale_after, self._worker_id)
        now = time.monotonic()
        self._round_at = now + self._jittered()
        if kept is None:
            self._due.busy(now)
            return self._wait()
        if kept.recovered or kept.failed:
            _log.warning(
                "job.recovered pending=%d failed=%d silent_workers=%s",
                kept.recovered,
                kept.failed,
                ",".join(kept.silent_workers),
            )
        self._looked(kept.promoted, kept.next_due_in)
        return self._wait()

    async def promote(self) -> float:
        """Let jobs join the line that are due now; returns how many seconds the next can wait."""
        self._due.looking()
        answer = await store_upkeep.promote_due(self._store, self._worker_id)
        if answer is None:
            self._due.busy(time.monotonic())
        else:
            self._looked(*answer)
        return self._wait()

    def _looked(self, promoted: int, next_due_in: timedelta | None) -> None:
        now = time.monotonic()
        self._due.found(None if next_due_in is None else next_due_in.total_seconds(), now)
        self._not_before = now + (_GATHER if promoted < _AT_ONCE else 0.0)

    def _wait(self) -> float:
        at = self._round_at if self._due.at is None else min(self._round_at, self._due.at)
        return max(at, self._not_before) - time.monotonic()

    async def run(self) -> None:
        away = 0.5
        while True:
            try:
                whole = time.monotonic() >= self._round_at
                wait = await (self.step() if whole else self.promote())
                away = 0.5
            except HowdahError as error:
                if not transient(error):
                    raise
                wait = away = min(away * 2, 5.0)
                _log.warning("upkeep.waiting retry_in=%.1fs error=%s", wait, error)
                await asyncio.sleep(wait)
                continue
            while wait > 0:
                self._news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._news.wait()
                wait = self._wait()

    def _jittered(self) -> float:
        return self._every * random.uniform(0.8, 1.2)  # noqa: S311 - spreads the workers, no more
