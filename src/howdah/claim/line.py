"""Line: the job types of a worker, and which part of the line its next claim scans.

The line also has entries of jobs that other workers hold, and dead ones that a long transaction
keeps. So a claim does not scan the whole line. It starts at a mark: the place in each lane where
the last claim stopped. A mark is a hint, not the truth: a job that is committed late, or released,
is before it. So scans repeat a part. Nearly all repeat the last moment, some repeat more, and few
the whole line. None takes more than its share of the time, however much it has to skip.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from howdah.job import Claim, from_epoch
from howdah.store.claim import ScanRanges

FIRST_RANK, LAST_RANK = -(2**31), 2**31 - 1
_FIRST_ID = UUID(int=0)
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)

OVERLAPS = (0.01, 0.1, 1.0)  # seconds: how often scans begin before the marks, and how far back
SHARE = 0.02  # the part of the time that each kind of repeated scan may take
IDLE_SHARE = 0.2  # the same for a worker with nothing else to do
SLOW = 0.003  # seconds: a whole scan that takes longer has skipped many entries
WHOLE_EVERY = 0.04  # seconds at least between two whole scans, unless one is asked for
RESCAN_EVERY = 0.25  # seconds: the same where they are slow
FEW_LANES = 8  # each mark costs a probe of the index: with more lanes, only a slow line uses them
MAX_LANES = 1000  # with more, a line forgets its marks

Marks = dict[tuple[str, int], tuple[float, UUID]]  # of each lane: a type and a rank


class Scan(NamedTuple):
    """What one claim scans."""

    ranges: ScanRanges
    whole: bool = False  # every type from its beginning to its end
    overlap: Overlap | None = None  # which part it repeats


class Overlap:
    """Where the marks were some time ago: every `seconds`, a scan begins there.

    It finds a job that was committed up to `seconds` after the marks had passed its place: the scan
    may come as long after the commit, so these marks are twice as old at least.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds: float = seconds
        self.marks: Marks = {}
        self.due_at: float = 0.0
        self._next: Marks = {}
        self._next_at = -math.inf

    def move(self, marks: Marks, now: float) -> None:
        """Keep the marks of now, to begin there later."""
        if now >= self._next_at + 2 * self.seconds:
            self.marks, self._next, self._next_at = self._next, marks.copy(), now


class Line:
    """The line of a worker's job types, and where its last claims stopped."""

    def __init__(self, job_types: Iterable[str]) -> None:
        self.job_types: list[str] = sorted(set(job_types))
        self._whole = _whole(self.job_types)
        self.slow: bool = False  # whether whole scans have become slow
        self._forget_marks()
        self._more = False  # whether the last claim got all that it asked for
        self._scanned_at = -math.inf  # the last whole scan
        self._scan_took = 0.0
        self._rescan_soon = False

    def __contains__(self, job_type: str) -> bool:
        return job_type in self.job_types

    def whole(self) -> ScanRanges:
        """Return every type's line from its beginning to its end."""
        return self._whole

    def next_scan(self, now: float, only: Sequence[str] = ()) -> Scan:
        """Return what to scan next, of these types alone if any."""
        if only:
            return Scan(self._after(self._overlaps[0].marks, only))
        if not self.slow and (self._rescan_soon or now >= self._whole_due):
            self._rescan_soon = False
            return Scan(self._whole, whole=True)
        for overlap in reversed(self._overlaps):
            if now >= overlap.due_at:
                return Scan(self._after(overlap.marks, self.job_types), overlap=overlap)
        # more is in line: nothing is gained by looking back already
        marks = self._marks if self._more else self._overlaps[0].marks
        return Scan(self._after(marks, self.job_types))

    def rescan_due(self, now: float, idle: bool = False) -> bool:
        """Whether it is time to scan a slow line as a whole, beside the claims."""
        pause = self._scan_took / (IDLE_SHARE if idle or self._rescan_soon else SHARE)
        return self.slow and now >= self._scanned_at + (
            pause if self._rescan_soon else max(RESCAN_EVERY, pause)
        )

    def rescan_soon(self) -> None:
        """Note that jobs are before the marks, or may be: some were released."""
        self._rescan_soon = True

    def scanned(
        self, scan: Scan, claims: Sequence[Claim], wanted: int, took: float, now: float
    ) -> None:
        """Learn from a scan where it stopped, how long it took, and whether there is more."""
        if scan.whole:
            self.slow = took > SLOW * max(1, len(claims) / 100, len(self.job_types) / 50)
            self._scanned_at, self._scan_took = now, took
        elif scan.overlap is not None:
            scan.overlap.due_at = now + max(scan.overlap.seconds, took / SHARE)
        self._more = len(claims) == wanted
        if claims:
            self._mark(claims)
        for overlap in self._overlaps:
            overlap.move(self._marks, now)

    def rescanned(self, claims: Sequence[Claim], wanted: int, took: float, now: float) -> None:
        """Learn from a whole scan beside the claims."""
        more = self._more
        self._rescan_soon = False
        self.scanned(Scan(self._whole, whole=True), claims, wanted, took, now)
        self._more = more

    @property
    def _whole_due(self) -> float:
        if len(self._marks) > FEW_LANES:
            return -math.inf
        return self._scanned_at + max(WHOLE_EVERY, self._scan_took / SHARE)

    def _mark(self, claims: Sequence[Claim]) -> None:
        """Move the mark of each lane to the last of these jobs in it.

        No mark is ahead of the server's clock: a job may say that it was created in the future. If
        a mark is, the clock was set back.
        """
        first, last = claims[0], claims[-1]
        if len(self.job_types) == 1 and first.priority == last.priority:
            claims = (last,)  # the usual case: all are of one lane, and in its order
        marks = self._marks
        for claim in claims:
            lane, place = (claim.job_type, ~claim.priority), (claim.ready_at, claim.id)
            mark = marks.get(lane)
            if mark is not None and mark[0] > claim.claimed_at:
                self._forget_marks()
                return
            if claim.ready_at <= claim.claimed_at and (mark is None or place > mark):
                marks[lane] = place
        if len(marks) > MAX_LANES:
            self._forget_marks()

    def _forget_marks(self) -> None:
        self._marks: Marks = {}
        self._overlaps = [Overlap(seconds) for seconds in OVERLAPS]

    def _after(self, marks: Marks, job_types: Sequence[str]) -> ScanRanges:
        """Return the line of these types without the part before the marks of its lanes."""
        if len(marks) > FEW_LANES and not self.slow:
            marks = {}
        lanes: defaultdict[str, list[tuple[int, float, UUID]]] = defaultdict(list)
        for (job_type, rank), (ready_at, id) in marks.items():
            lanes[job_type].append((rank, ready_at, id))
        ranges: list[tuple[str, int, datetime, UUID, int]] = []
        for job_type in job_types:
            after_rank, after_ready_at, after_id = FIRST_RANK, _BEGINNING, _FIRST_ID
            for rank, ready_at, id in sorted(lanes[job_type]):
                if rank > after_rank:  # there may be jobs in a lane that has no mark yet
                    ranges.append((job_type, after_rank, after_ready_at, after_id, rank - 1))
                after_rank, after_ready_at, after_id = rank, from_epoch(ready_at), id
            ranges.append((job_type, after_rank, after_ready_at, after_id, LAST_RANK))
        return _scan_ranges(ranges)


def _whole(job_types: Iterable[str]) -> ScanRanges:
    return _scan_ranges((name, FIRST_RANK, _BEGINNING, _FIRST_ID, LAST_RANK) for name in job_types)


def _scan_ranges(rows: Iterable[tuple[str, int, datetime, UUID, int]]) -> ScanRanges:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], [], []]
    return ScanRanges(*columns)  # pyright: ignore[reportArgumentType]
