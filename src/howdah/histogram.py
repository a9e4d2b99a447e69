"""Histogram: times counted in fixed classes, from half a millisecond to nineteen hours.

Two neighbouring bounds differ by the factor √2, so a quantile that is read from the classes is
off by a fifth at most. The classes are the same for every worker and every version: howdah.measures
and this file must agree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from datetime import timedelta

import msgspec

CELLS = 56
BOUNDS = tuple(0.0005 * 2 ** (n / 2) for n in range(CELLS - 1))  # seconds; the last cell has none


def cell_of(seconds: float) -> int:
    """Say in which cell a time is counted: the first whose bound is not below it."""
    return bisect_left(BOUNDS, seconds)


def quantile(cells: Sequence[int], share: float) -> float | None:
    """Read the time that this share of all did not exceed; None where nothing was counted."""
    total = sum(cells)
    if not total:
        return None
    wanted, below = share * total, 0
    for n, jobs in enumerate(cells):
        if jobs and below + jobs >= wanted:
            if n == 0:
                return BOUNDS[0] * (wanted - below) / jobs
            if n == CELLS - 1:
                return BOUNDS[-1]
            # even on the scale of the classes, which is logarithmic
            return BOUNDS[n - 1] * 2 ** ((wanted - below) / jobs / 2)
        below += jobs
    raise AssertionError("a share of all is reached by then")


class Times(msgspec.Struct, frozen=True):
    """How long something took: of so many, the median, one in a hundred, and the mean."""

    jobs: int = 0
    p50: timedelta | None = None
    p99: timedelta | None = None
    mean: timedelta | None = None

    @classmethod
    def of(cls, cells: Sequence[int], seconds: float) -> Times:
        """Read them from a histogram and the sum of all times."""
        jobs = sum(cells)
        if not jobs:
            return cls()
        p50, p99 = quantile(cells, 0.5), quantile(cells, 0.99)
        assert p50 is not None
        assert p99 is not None
        return cls(
            jobs, timedelta(seconds=p50), timedelta(seconds=p99), timedelta(seconds=seconds / jobs)
        )
