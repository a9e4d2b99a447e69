"""Aggregate: the median and the spread of repeated measurements.

A rate is the median of the repetitions, with the lowest and the highest. A pickup is a percentile
within each measurement, and then the median of those percentiles. The rule is the same for every
peer.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.record import Measurement
from bench.workloads import WORKLOADS

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A median and its spread."""

    median: float
    low: float
    high: float


Aggregates = dict[tuple[str, str], Aggregate]  # by peer, and by workload or "pickup_p50" etc.


def aggregate_values(values: Sequence[float]) -> Aggregate:
    return Aggregate(statistics.median(values), min(values), max(values))


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that is not exceeded by so many percent of the values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def aggregate(measurements: Iterable[Measurement]) -> Aggregates:
    """Aggregate the repetitions of each workload. Failed measurements are left out."""
    values: dict[tuple[str, str], list[float]] = {}
    for measurement in measurements:
        for name, value in _values(measurement):
            values.setdefault((measurement.peer, name), []).append(value)
    return {key: aggregate_values(repeated) for key, repeated in values.items()}


def _values(measurement: Measurement) -> list[tuple[str, float]]:
    if measurement.problem is not None:
        return []
    if WORKLOADS[measurement.workload].kind == "pickup":
        return [(f"pickup_p{p}", percentile(measurement.pickups_ms, p)) for p in PERCENTILES]
    return [(measurement.workload, measurement.jobs / measurement.seconds)]
