"""Aggregate: the median and the spread of repeated measurements.

A rate is the median of the turns, with the lowest and the highest. A pickup is a percentile
within each measurement, and then the median of those percentiles. CPU time and WAL per job have
names of their own, such as `drain_1.server_cpu`. The rule is the same for every peer.
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


Aggregates = dict[tuple[str, str], Aggregate]  # by peer, and by the name of a value
Series = dict[int, float]  # by turn
Results = dict[tuple[str, str], Series]  # by peer, and by the name of a value

SERVER_CPU, WORKER_CPU, CPU, WAL = "server_cpu", "worker_cpu", "cpu", "wal"


def per_job(workload: str, cost: str) -> str:
    """Return the name of a cost per job: CPU time in microseconds, or bytes of WAL."""
    return f"{workload}.{cost}"


def aggregate_values(values: Sequence[float]) -> Aggregate:
    return Aggregate(statistics.median(values), min(values), max(values))


def percentile(values: Iterable[float], percent: float) -> float:
    """Return the smallest value that is not exceeded by so many percent of the values."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def aggregate(measurements: Iterable[Measurement]) -> Aggregates:
    """Aggregate the turns of each workload. Failed measurements are left out."""
    values = {
        key: [value for repeated in of_turns.values() for value in repeated]
        for key, of_turns in _by_turn(measurements).items()
    }
    return {key: aggregate_values(repeated) for key, repeated in values.items()}


def results(measurements: Iterable[Measurement]) -> Results:
    """Return each value turn by turn. In older records a turn has up to three measurements."""
    return {
        key: {turn: statistics.median(repeated) for turn, repeated in of_turns.items()}
        for key, of_turns in _by_turn(measurements).items()
    }


def _by_turn(
    measurements: Iterable[Measurement],
) -> dict[tuple[str, str], dict[int, list[float]]]:
    values: dict[tuple[str, str], dict[int, list[float]]] = {}
    for measurement in measurements:
        for name, value in _values(measurement):
            of_turns = values.setdefault((measurement.peer, name), {})
            of_turns.setdefault(measurement.turn, []).append(value)
    return values


def _values(measurement: Measurement) -> list[tuple[str, float]]:
    if measurement.problem is not None:
        return []
    return [*_speeds(measurement), *_costs(measurement)]


def _speeds(measurement: Measurement) -> list[tuple[str, float]]:
    if WORKLOADS[measurement.workload].kind == "pickup":
        return [(f"pickup_p{p}", percentile(measurement.pickups_ms, p)) for p in PERCENTILES]
    return [(measurement.workload, measurement.jobs / measurement.seconds)]


def _costs(measurement: Measurement) -> list[tuple[str, float]]:
    server, worker = measurement.server_cpu_us, measurement.worker_cpu_us
    costs = {SERVER_CPU: server, WORKER_CPU: worker, WAL: measurement.wal_bytes}
    if server is not None and worker is not None:
        costs[CPU] = server + worker
    return [
        (per_job(measurement.workload, cost), value)
        for cost, value in costs.items()
        if value is not None
    ]
