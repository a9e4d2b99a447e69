"""Histogram: count times in fixed cells, from half a millisecond to nineteen hours.

Two neighbouring bounds differ by the factor √2, so a quantile is wrong by a fifth at most. The
cells are the same for every worker and every version: howdah.measures stores them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta

import msgspec

CELLS = 56
BOUNDS = tuple(0.0005 * 2 ** (n / 2) for n in range(CELLS - 1))  # seconds; the last cell has none


def cell_of(seconds: float) -> int:
    """Return the cell of a time: the first whose bound is not below it."""
    return bisect_left(BOUNDS, seconds)


def quantile(cells: Sequence[int], share: float) -> float | None:
    """Return the time that this share of all jobs did not exceed; None if nothing was counted."""
    total = sum(cells)
    if not total:
        return None
    rank, below = share * total, 0
    for n, jobs in enumerate(cells):
        if jobs and below + jobs >= rank:
            if n == 0:
                return BOUNDS[0] * (rank - below) / jobs
            if n == CELLS - 1:
                return BOUNDS[-1]
            # interpolate on the logarithmic scale of the cells
            return BOUNDS[n - 1] * 2 ** ((rank - below) / jobs / 2)
        below += jobs
    raise AssertionError("the sum of all cells reaches every rank")


class Times(msgspec.Struct, frozen=True):
    """How long something took: the number of jobs, the median, the 99th percentile, the mean."""

    jobs: int = 0
    p50: timedelta | None = None
    p99: timedelta | None = None
    mean: timedelta | None = None

    @classmethod
    def of(cls, cells: Sequence[int], seconds: float) -> Times:
        """Compute them from a histogram and the sum of all times."""
        jobs = sum(cells)
        if not jobs:
            return cls()
        p50, p99 = quantile(cells, 0.5), quantile(cells, 0.99)
        assert p50 is not None
        assert p99 is not None
        return cls(
            jobs, timedelta(seconds=p50), timedelta(seconds=p99), timedelta(seconds=seconds / jobs)
        )
