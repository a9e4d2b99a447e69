"""Figures: from what was measured to what is said, by the same rule for everyone.

A rate is the median over the repetitions, with the lowest and the highest beside it. A pickup
is a percentile within each turn, and then the median of those.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.record import Measurement
from bench.works import WORKS

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Figure:
    """A median and its spread."""

    median: float
    low: float
    high: float


Figures = dict[tuple[str, str], Figure]  # by peer and by work, or "pickup_p50" and the like


def figure(values: Sequence[float]) -> Figure:
    return Figure(statistics.median(values), min(values), max(values))


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that so many percent do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def figures(measurements: Iterable[Measurement]) -> Figures:
    """Bring together the repetitions of each work; failed ones are left out."""
    values: dict[tuple[str, str], list[float]] = {}
    for one in measurements:
        for name, value in _values(one):
            values.setdefault((one.peer, name), []).append(value)
    return {key: figure(found) for key, found in values.items()}


def _values(one: Measurement) -> list[tuple[str, float]]:
    if one.problem is not None:
        return []
    if WORKS[one.work].kind == "pickup":
        return [(f"pickup_p{p}", percentile(one.pickups_ms, p)) for p in PERCENTILES]
    return [(one.work, one.jobs / one.seconds)]
