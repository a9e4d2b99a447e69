"""Upkeep: promote, recover, prune; any worker does it, one at a time.

In SQL  sql/70_upkeep/

There is no leader to die: whoever asks first does a round, in one transaction, and the others
get nothing to do. A round says when the next waiting job is due, so that it is let into the
line on time and not a polling interval late. A worker that was itself cut off judges nobody by
their silence until the others have had time to come back, too.
"""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta

from howdah.errors import HowdahError
from howdah.logs import log_named
from howdah.store import Store, call
from howdah.store.refusals import passing

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

    async def step(self) -> float:
        """Do one round; returns how many seconds the next one can wait."""
        now = time.monotonic()
        if now >= self._prune_due:
            self._prune_due = now + _PRUNE_EVERY
            for name in await call.prune(self._store):
                _log.info("upkeep.pruned partition=%s", name)
        kept = await call.upkeep(self._store, self._stale_after, self._worker_id)
        if kept is None:
            return self._jittered()
        if kept.recovered or kept.failed:
            _log.warning(
                "job.recovered pending=%d failed=%d silent_workers=%s",
                kept.recovered,
                kept.failed,
                ",".join(kept.silent_workers),
            )
        if kept.next_due_in is None:
            return self._jittered()
        wait = min(self._jittered(), kept.next_due_in.total_seconds())
        return max(wait, _GATHER if 0 < kept.promoted < _AT_ONCE else 0.0)

    async def run(self) -> None:
        away = 0.5
        while True:
            try:
                wait = await self.step()
                away = 0.5
            except HowdahError as error:
                if not passing(error):
                    raise
                wait = away = min(away * 2, 5.0)
                _log.warning("upkeep.waiting retry_in=%.1fs error=%s", wait, error)
            await asyncio.sleep(max(wait, 0.001))

    def _jittered(self) -> float:
        return self._every * random.uniform(0.8, 1.2)  # noqa: S311 - spreads the workers, no more
