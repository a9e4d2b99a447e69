"""Claim: take the best jobs that stand in line, whatever others have locked.

Comes after   store     where enqueue put them
Comes before  run/      which gets one `Claim` per attempt
In SQL        sql/40_claim/

A `Line` knows the types a worker takes and, when a look at the whole line has become
slow, where it left off in each lane. The mark is a hint, never the truth: a look back at the
whole line comes again and again, beside the claims, and finds what was committed late or handed
back, and no mark covers the last moments.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import partial
from uuid import UUID

from howdah.errors import HowdahError
from howdah.job import Claim, Job, moment
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import claim as store_claim
from howdah.store.claim import ScanRanges
from howdah.store.errors import LostRace, about_what_is_read

_log = log_named("howdah.claim")

FIRST_RANK, LAST_RANK = -(2**31), 2**31 - 1
_FIRST_ID = UUID(int=0)
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)

SLOW = 0.02  # seconds: a whole look of this length means that dead entries pile up
SHARE = 0.02  # the part of the time that whole looks may take once they are slow
IDLE_SHARE = 0.2  # the same for a worker with nothing else to do
RACES = 5  # how often a claim that lost a race is sent again at once
FEW = 8  # jobs that a woken worker asks for first, without waiting for its turn
FRESH = 0.5  # seconds: so much of the line's end is never skipped


class Line:
    """The line of a worker's job types, and where the worker left off."""

    def __init__(self, job_types: Iterable[str]) -> None:
        self.job_types: list[str] = sorted(set(job_types))
        self._whole = _whole(self.job_types)
        self._marks: dict[str, dict[int, tuple[float, UUID]]] = {}
        self.slow: bool = False  # whether whole looks have become slow
        self._looked_at = 0.0
        self._look_took = 0.0
        self._handed_back = False

    def __contains__(self, job_type: str) -> bool:
        return job_type in self.job_types

    def whole(self) -> ScanRanges:
        """Return every type's line from its beginning to its end."""
        return self._whole

    def after_marks(self) -> ScanRanges:
        """Return every type's line without what lies before the marks of its lanes."""
        found: list[tuple[str, int, datetime, UUID, int]] = []
        for job_type in self.job_types:
            rank, ready_at, id = FIRST_RANK, _BEGINNING, _FIRST_ID
            for marked_rank, (marked_at, marked_id) in sorted(
                self._marks.get(job_type, {}).items()
            ):
                if marked_rank > rank:
                    found.append((job_type, rank, ready_at, id, marked_rank - 1))
                rank, ready_at, id = marked_rank, moment(marked_at), marked_id
            found.append((job_type, rank, ready_at, id, LAST_RANK))
        return _stretches(found)

    def next_look(self, only: Sequence[str] = ()) -> tuple[ScanRanges, bool]:
        """Choose the next look, at these types alone if so; says whether it is a whole one."""
        if self.slow:
            return self.after_marks(), False
        return (_whole(only), False) if only else (self.whole(), True)

    def look_back_due(self, now: float, idle: bool = False) -> bool:
        """Whether it is time to look at the whole line again."""
        pause = self._look_took / (IDLE_SHARE if idle or self._handed_back else SHARE)
        return self.slow and now >= self._looked_at + (
            pause if self._handed_back else max(1.0, pause)
        )

    def look_back_soon(self) -> None:
        """Jobs are known to stand before the marks, or were handed back and may."""
        self._handed_back = True

    def looked(self, claims: Sequence[Claim], took: float, whole: bool, now: float) -> None:
        """Learn from a look: how long it took, and where it left off."""
        if whole:
            self.slow = took > SLOW * max(1, len(claims) / 250, len(self.job_types) / 50)
            self._looked_at, self._look_took = now, took
            self._handed_back = False
            if not self.slow:
                self._marks.clear()
        if self.slow:
            for claim in claims:
                if claim.ready_at < claim.claimed_at - FRESH:
                    lanes = self._marks.setdefault(claim.job_type, {})
                    mark = lanes.get(~claim.priority)
                    if mark is None or (claim.ready_at, claim.id) > mark:
                        lanes[~claim.priority] = (claim.ready_at, claim.id)


def _whole(job_types: Iterable[str]) -> ScanRanges:
    return _stretches((name, FIRST_RANK, _BEGINNING, _FIRST_ID, LAST_RANK) for name in job_types)


def _stretches(rows: Iterable[tuple[str, int, datetime, UUID, int]]) -> ScanRanges:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], [], []]
    return ScanRanges(*columns)  # pyright: ignore[reportArgumentType]


Look = Callable[[Store, str, int, Line], Awaitable[list[Claim]]]


async def claim(
    store: Store, worker_id: str, batch_size: int, line: Line, only: Sequence[str] = ()
) -> list[Claim]:
    """Claim up to so many jobs of the line, of these types alone if any are named.

    Who names one type was woken for it and should ask for `FEW`: those need not wait for a turn.
    """
    if len(only) == 1 and not line.slow:
        return await _look(
            line, partial(store_claim.claim_next, store, worker_id, batch_size, only[0])
        )
    stretches, whole = line.next_look(only)
    return await _look(
        line, partial(store_claim.claim, store, worker_id, batch_size, stretches), whole
    )


async def look_back(store: Store, worker_id: str, batch_size: int, line: Line) -> list[Claim]:
    """Claim up to so many jobs from the whole of a line that has become slow.

    Beside the claims: nobody should wait for so long a look.
    """
    whole = line.whole()
    return await _look(
        line, partial(store_claim.claim, store, worker_id, batch_size, whole, False), True
    )


async def fail_unreadable(
    store: Store, worker_id: str, job_types: Sequence[str], refused: HowdahError
) -> bool:
    """Set jobs aside because of which a claim was refused; returns whether there were any."""
    if not about_what_is_read(refused):
        return False
    failed = await store_claim.fail_unreadable(store, worker_id, job_types)
    for id, reason in failed:
        _log.error("claim.unreadable id=%s error=%s", id, reason)
    return bool(failed)


async def claim_batch(
    store: Store, worker_id: str, job_types: Sequence[str], batch_size: int
) -> list[Job]:
    """Claim whole jobs, for a loop that is not a worker."""
    while True:
        try:
            return await store_claim.claim_job_batch(store, worker_id, job_types, batch_size)
        except HowdahError as refused:
            if not await fail_unreadable(store, worker_id, job_types, refused):
                raise


async def _look(
    line: Line, ask: Callable[[], Awaitable[list[Claim]]], whole: bool = False
) -> list[Claim]:
    began = time.monotonic()
    for _ in range(RACES):
        try:
            claims = await ask()
            break
        except LostRace:  # a plain UPDATE ended a job while we locked it
            continue
    else:
        claims = await ask()
    now = time.monotonic()
    line.looked(claims, now - began, whole, now)
    return claims
