"""Measures: what a worker measures of its own work, and how it tells.

Comes after   settle   which hands over each batch of endings once it is written down
In SQL        sql/80_observe/record_measures.sql, compact_measures.sql, sample_waiting.sql

Nothing is done per job as it runs. Of each settled batch the endings are counted by type; times
are taken of all in a small batch and of an even sample in a large one, each standing for its
share, so a worker that drains a hundred thousand jobs a second measures at the price of a few
thousand. Foreign workers are not measured unless they call howdah.record_measures themselves.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from uuid import UUID

import msgspec

from howdah.errors import HowdahError
from howdah.histogram import CELLS, cell_of
from howdah.outcomes import Ending, Release
from howdah.safe_logging import log_named
from howdah.states import State, Verb
from howdah.store import Store, query

_log = log_named("howdah.measures")

EVERY = 5.0  # seconds between two rows of a type
FOLD_EVERY = 60.0
COUNT_EVERY = (
    20.0  # seconds between two asks for a count of who waits: the first in a minute counts
)
COUNT_WITHIN = timedelta(seconds=1)  # that a count may take
COUNT_AGAIN = 300.0  # seconds after a count that took longer: the charts have a gap there
SAMPLE = 32  # times taken of one batch, shared by its types, but at least one of each
_COUNTED = {
    Verb.COMPLETE: "completed",
    Verb.FAIL: "failed",
    Verb.RETRY: "retried",
    Verb.CANCEL: "cancelled",
    Verb.RELEASE: "released",
}


class _Tally:
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

    def __init__(self, store: Store, worker_id: str, asked_to_stop: Callable[[], None]) -> None:
        self._store = store
        self._worker_id = worker_id
        self._asked_to_stop = asked_to_stop
        self._tallies: defaultdict[str, _Tally] = defaultdict(_Tally)
        self._server_ahead: float | None = None  # the server's clock less our monotonic one
        self._fold_due = 0.0
        self._count_due = 0.0

    def claimed(self, claimed_at: float, sent: float) -> None:
        """Learn from a claim how our clock and the server's differ.

        The server stamped it after we had sent it; the least difference ever seen is the
        closest, and it is let go slowly, for clocks drift.
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
        """Count endings that were written down; `ended` is when the batch was taken up."""
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
                    gone = sum(moved[ending.claim.id] is State.FAILED for ending in own)
                    if gone:
                        self._tallies[job_type].counts["failed"] += gone
                continue
            tally = self._tallies[job_type]
            if verb is Verb.RETRY and isinstance(moved, dict):
                gone = sum(moved[ending.claim.id] is State.FAILED for ending in own)
                tally.counts["failed"] += gone
                tally.counts["retried"] += len(own) - gone
            else:
                tally.counts[_COUNTED[verb]] += len(own)
            self._time(tally, own, ended, SAMPLE * len(own) // len(endings))

    def _time(self, tally: _Tally, endings: list[Ending], ended: float, samples: int) -> None:
        """Take the times of an even sample; each of it stands for as many as there are."""
        jobs = len(endings)
        samples = max(1, min(jobs, samples))
        ahead = self._server_ahead
        start = random.random()  # noqa: S311 - so that no rhythm of the batch is followed
        before = 0
        for n in range(samples):
            after = (n + 1) * jobs // samples
            ending = endings[before + int((after - before) * start)]
            weight, before = after - before, after
            if ending.began is None:
                continue
            ran = max(0.0, (ending.ended or ended) - ending.began)
            tally.run[cell_of(ran)] += weight
            tally.run_seconds += ran * weight
            if ahead is not None:
                waited = max(0.0, ending.began + ahead - ending.claim.ready_at)
                tally.pickup[cell_of(waited)] += weight
                tally.pickup_seconds += waited * weight

    def gathered(self) -> dict[str, dict[str, object]]:
        """Return what was measured since the last time, by type, and begin anew."""
        tallies, self._tallies = self._tallies, defaultdict(_Tally)
        return {job_type: tally.report(job_type) for job_type, tally in tallies.items()}

    async def step(self) -> None:
        """Report what was measured since the last time, and hear whether to stop."""
        rows = list(self.gathered().values())
        if await self._store.fetchval(
            "select howdah.record_measures($1, $2) from howdah.async_commit()",
            self._worker_id,
            msgspec.json.encode(rows).decode(),
        ):
            _log.info("worker.drained id=%s: somebody asked it to stop", self._worker_id)
            self._asked_to_stop()

    async def fold(self) -> None:
        """Keep the measures few, once a minute; any worker does it for all."""
        now = time.monotonic()
        if now >= self._fold_due:
            self._fold_due = now + FOLD_EVERY * random.uniform(0.8, 1.2)  # noqa: S311
            await self._store.fetchval(
                "select howdah.compact_measures() from howdah.async_commit()"
            )

    async def count_waiting(self) -> None:
        """Write down how many jobs wait, once a minute; any worker does it for all."""
        now = time.monotonic()
        if now < self._count_due:
            return
        self._count_due = now + COUNT_EVERY * random.uniform(0.8, 1.2)  # noqa: S311
        sql = "select howdah.sample_waiting() from howdah.async_commit()"
        try:
            await query.fetch(self._store, COUNT_WITHIN, sql, writes=True)
        except query.TookTooLong:
            self._count_due = now + COUNT_AGAIN
            raise

    async def run(self) -> None:
        """Report every few seconds. What cannot be told is forgotten: jobs matter more."""
        while True:
            await asyncio.sleep(EVERY * random.uniform(0.8, 1.2))  # noqa: S311
            try:
                await self.step()
                await self.fold()
                await self.count_waiting()
            except HowdahError as error:
                _log.warning("measures.lost error=%s", error)
