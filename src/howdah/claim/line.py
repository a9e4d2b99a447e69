"""Line: the job types of a worker, and which part of the line its next claim scans.

Dead index entries can make a scan of the whole line slow. Then a claim starts at a mark: the place
in each lane where the last claim stopped. A mark is a hint, not the truth. A rescan of the whole
line, beside the claims, finds the jobs that were committed late or released. A mark never covers
the last half second.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from uuid import UUID

from howdah.job import Claim, from_epoch
from howdah.store.claim import ScanRanges

FIRST_RANK, LAST_RANK = -(2**31), 2**31 - 1
_FIRST_ID = UUID(int=0)
_BEGINNING = datetime(1, 1, 1, tzinfo=UTC)

SLOW = 0.02  # seconds: a full scan that takes longer has met many dead entries
SHARE = 0.02  # the part of the time that rescans may take
IDLE_SHARE = 0.2  # the same for a worker with nothing else to do
FRESH = 0.5  # seconds: the newest part of the line, which no mark covers


class Line:
    """The line of a worker's job types, and where its last claim stopped."""

    def __init__(self, job_types: Iterable[str]) -> None:
        self.job_types: list[str] = sorted(set(job_types))
        self._whole = _whole(self.job_types)
        self._marks: dict[str, dict[int, tuple[float, UUID]]] = {}
        self.slow: bool = False  # whether full scans have become slow
        self._scanned_at = 0.0  # the last full scan
        self._scan_took = 0.0
        self._rescan_soon = False

    def __contains__(self, job_type: str) -> bool:
        return job_type in self.job_types

    def whole(self) -> ScanRanges:
        """Return every type's line from its beginning to its end."""
        return self._whole

    def after_marks(self) -> ScanRanges:
        """Return every type's line without the part before the marks of its lanes."""
        ranges: list[tuple[str, int, datetime, UUID, int]] = []
        for job_type in self.job_types:
            rank, ready_at, id = FIRST_RANK, _BEGINNING, _FIRST_ID
            for marked_rank, (marked_at, marked_id) in sorted(
                self._marks.get(job_type, {}).items()
            ):
                if marked_rank > rank:
                    ranges.append((job_type, rank, ready_at, id, marked_rank - 1))
                rank, ready_at, id = marked_rank, from_epoch(marked_at), marked_id
            ranges.append((job_type, rank, ready_at, id, LAST_RANK))
        return _scan_ranges(ranges)

    def next_scan(self, only: Sequence[str] = ()) -> tuple[ScanRanges, bool]:
        """Return what to scan next, of these types alone if any, and whether it is everything."""
        if self.slow:
            return self.after_marks(), False
        return (_whole(only), False) if only else (self.whole(), True)

    def rescan_due(self, now: float, idle: bool = False) -> bool:
        """Whether it is time to scan the whole line again."""
        pause = self._scan_took / (IDLE_SHARE if idle or self._rescan_soon else SHARE)
        return self.slow and now >= self._scanned_at + (
            pause if self._rescan_soon else max(1.0, pause)
        )

    def rescan_soon(self) -> None:
        """Note that jobs are before the marks, or may be: some were released."""
        self._rescan_soon = True

    def scanned(self, claims: Sequence[Claim], took: float, whole: bool, now: float) -> None:
        """Learn from a scan how long it took and where it stopped."""
        if whole:
            self.slow = took > SLOW * max(1, len(claims) / 250, len(self.job_types) / 50)
            self._scanned_at, self._scan_took = now, took
            self._rescan_soon = False
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
    return _scan_ranges((name, FIRST_RANK, _BEGINNING, _FIRST_ID, LAST_RANK) for name in job_types)


def _scan_ranges(rows: Iterable[tuple[str, int, datetime, UUID, int]]) -> ScanRanges:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], [], []]
    return ScanRanges(*columns)  # pyright: ignore[reportArgumentType]
