"""Measures: count the jobs of a worker and measure their times, and report that.

Comes after   settle             which passes on each batch of endings that was written
Comes before  store/measures.py  which writes the report

Nothing is done while a job runs. The endings of each written batch are counted by type. Times are
taken of every job in a small batch, and of an even sample in a large one. Each sample counts for
its share, so measuring costs little even at a hundred thousand jobs a second. Foreign workers are
not measured unless they call howdah.record_measures themselves.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.errors import HowdahError
from howdah.histogram import CELLS, cell_of
from howdah.outcomes import Ending, Release
from howdah.safe_logging import log_named
from howdah.states import State, Verb
from howdah.store import Store, query
from howdah.store import measures as store_measures

_log = log_named("howdah.measures")

EVERY = 5.0  # seconds between two reports
COMPACT_EVERY = 60.0  # seconds
COUNT_EVERY = 20.0  # seconds between two tries to count waiting jobs; one a minute succeeds
LIMITS_EVERY = 10.0  # seconds between two tries to count the use of limits
COUNT_WITHIN = timedelta(seconds=1)  # the time limit of a count
COUNT_AGAIN = 300.0  # seconds to wait after a count that took longer; charts have a gap then
SAMPLE = 32  # times taken of one batch, shared by its types, but at least one of each type
_COUNTED = {
    Verb.COMPLETE: "completed",
    Verb.FAIL: "failed",
    Verb.RETRY: "retried",
    Verb.CANCEL: "cancelled",
    Verb.RELEASE: "released",
}


class _Counting:
    """Counts now and then what stands in the database; any worker does it for all."""

    def __init__(self, count: Callable[[Store, timedelta], Awaitable[None]], every: float) -> None:
        self._count = count
        self._every = every
        self._due = 0.0

    async def step(self, store: Store) -> None:
        now = time.monotonic()
        if now < self._due:
            return
        self._due = now + self._every * random.uniform(0.8, 1.2)  # noqa: S311
        try:
            await self._count(store, COUNT_WITHIN)
        except query.TookTooLong:
            self._due = now + COUNT_AGAIN
            raise


class _TypeMeasures:
    """What was measured of one type since the last report."""

    __slots__ = ("counts", "pickup", "pickup_seconds", "run", "run_seconds")

    def __init__(self) -> None:
        self.counts: defaultdict[str, int] = defaultdict(int)
        self.pickup = [0] * CELLS
        self.run = [0] * CELLS
        self.pickup_seconds = 0.0
        self.run_seconds = 0.0

    def report(self, job_type: str) -> dict[str, object]:
        return {
            "job_type": job_type,
            **self.counts,
            "pickup": _trimmed(self.pickup),
            "run": _trimmed(self.run),
            "pickup_seconds": self.pickup_seconds,
            "run_seconds": self.run_seconds,
        }


def _trimmed(cells: list[int]) -> list[int]:
    """Leave out the zeros at the end."""
    last = max((n for n, jobs in enumerate(cells) if jobs), default=-1)
    return cells[: last + 1]


class Measures:
    """One worker's measures; `run` reports them for as long as the worker lives."""

    def __init__(self, store: Store, worker_id: str, on_drain: Callable[[], None]) -> None:
        self._store = store
        self._worker_id = worker_id
        self._on_drain = on_drain  # called when somebody asked this worker to stop
        self._by_type: defaultdict[str, _TypeMeasures] = defaultdict(_TypeMeasures)
        self._server_ahead: float | None = None  # the server's clock minus our monotonic clock
        self._compact_due = 0.0
        self._waiting = _Counting(store_measures.sample_waiting, COUNT_EVERY)
        self._limits = _Counting(store_measures.sample_limits, LIMITS_EVERY)

    def claimed(self, claimed_at: float, sent: float) -> None:
        """Learn from a claim how our clock and the server's differ.

        The server took its time after we had sent the claim, so the smallest difference is the
        best estimate. It grows slowly, because clocks drift.
        """
        ahead = claimed_at - sent
        known = self._server_ahead
        self._server_ahead = ahead if known is None else min(ahead, known + 1e-5)

    def settled(
        self,
        verb: Verb,
        endings: Sequence[Ending],
        moved: Collection[UUID] | dict[UUID, State | None],
        ended: float,
    ) -> None:
        """Count endings that were written; `ended` is the time of those that have none."""
        by_type: defaultdict[str, list[Ending]] = defaultdict(list)
        if len(moved) == len(endings):
            for ending in endings:
                by_type[ending.claim.job_type].append(ending)
        else:
            for ending in endings:
                if ending.claim.id in moved:
                    by_type[ending.claim.job_type].append(ending)
        for job_type, own in by_type.items():
            if verb is Verb.RELEASE:
                own = [ending for ending in own if type(ending.outcome) is not Release]
                if not own:
                    continue
            if verb is Verb.HAND_BACK:  # nothing has run; those that failed count as failed
                if isinstance(moved, dict):
                    failed = sum(moved[ending.claim.id] is State.FAILED for ending in own)
                    if failed:
                        self._by_type[job_type].counts["failed"] += failed
                continue
            measures = self._by_type[job_type]
            if verb is Verb.RETRY and isinstance(moved, dict):
                failed = sum(moved[ending.claim.id] is State.FAILED for ending in own)
                measures.counts["failed"] += failed
                measures.counts["retried"] += len(own) - failed
            else:
                measures.counts[_COUNTED[verb]] += len(own)
            self._time(measures, own, ended, SAMPLE * len(own) // len(endings))

    def _time(
        self, measures: _TypeMeasures, endings: list[Ending], ended: float, samples: int
    ) -> None:
        """Take the times of an even sample; each counts for as many jobs as it stands for."""
        jobs = len(endings)
        samples = max(1, min(jobs, samples))
        ahead = self._server_ahead
        start = random.random()  # noqa: S311 - so that no pattern in the batch matters
        before = 0
        for n in range(samples):
            after = (n + 1) * jobs // samples
            ending = endings[before + int((after - before) * start)]
            weight, before = after - before, after
            if ending.began is None:
                continue
            ran = max(0.0, (ending.ended or ended) - ending.began)
            measures.run[cell_of(ran)] += weight
            measures.run_seconds += ran * weight
            if ahead is not None:
                waited = max(0.0, ending.began + ahead - ending.claim.ready_at)
                measures.pickup[cell_of(waited)] += weight
                measures.pickup_seconds += waited * weight

    def take(self) -> dict[str, dict[str, object]]:
        """Return what was measured since the last call, by type."""
        by_type, self._by_type = self._by_type, defaultdict(_TypeMeasures)
        return {job_type: measures.report(job_type) for job_type, measures in by_type.items()}

    async def step(self) -> None:
        """Report what was measured since the last time, and stop if somebody asked for it."""
        rows = msgspec.json.encode(list(self.take().values())).decode()
        if await store_measures.record(self._store, self._worker_id, rows):
            _log.info("worker.drained id=%s: somebody asked it to stop", self._worker_id)
            self._on_drain()

    async def compact(self) -> None:
        """Keep the number of measures small, once a minute; any worker does it for all."""
        now = time.monotonic()
        if now >= self._compact_due:
            self._compact_due = now + COMPACT_EVERY * random.uniform(0.8, 1.2)  # noqa: S311
            await store_measures.compact(self._store)

    async def count_waiting(self) -> None:
        """Write how many jobs wait, once a minute."""
        await self._waiting.step(self._store)

    async def count_limits(self) -> None:
        """Write how the named limits are used, several times a minute."""
        await self._limits.step(self._store)

    async def run(self) -> None:
        """Report every few seconds. A report that fails is dropped: jobs matter more."""
        while True:
            await asyncio.sleep(EVERY * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                await self.step()
                await self.compact()
                await self.count_waiting()
                await self.count_limits()
            except HowdahError as error:
                _log.warning("measures.lost error=%s", error)
