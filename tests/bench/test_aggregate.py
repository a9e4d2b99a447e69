"""Measurements are aggregated by the same rule for every peer."""

from __future__ import annotations

import pytest

from bench.aggregate import Aggregate, aggregate, percentile
from bench.record import Measurement
from tests.bench.sample_record import pickups, rates


def test_a_rate_is_the_median_of_the_repetitions_with_its_spread() -> None:
    aggregates = aggregate(rates("howdah", "drain_1", 100, 400, 200))
    assert aggregates == {("howdah", "drain_1"): Aggregate(200, 100, 400)}


def test_a_percentile_is_taken_within_each_repetition_and_then_the_median() -> None:
    fast, slow = [float(ms) for ms in range(1, 101)], [float(ms) for ms in range(101, 201)]
    aggregates = aggregate(pickups("howdah", fast, slow, fast))
    assert aggregates["howdah", "pickup_p50"] == Aggregate(50, 50, 150)
    assert aggregates["howdah", "pickup_p99"] == Aggregate(99, 99, 199)


def test_a_measurement_that_does_not_count_is_left_out() -> None:
    failed = Measurement(
        peer="howdah",
        workload="drain_1",
        turn=4,
        jobs=1000,
        seconds=1e-9,
        problem="one ran twice",
    )
    aggregates = aggregate([*rates("howdah", "drain_1", 100), failed])
    assert aggregates["howdah", "drain_1"].high == 100


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [([5.0], 99, 5.0), ([1.0, 2.0, 3.0, 4.0], 50, 2.0), ([4.0, 3.0, 2.0, 1.0], 95, 4.0)],
)
def test_a_percentile_is_a_value_that_occurred(
    values: list[float], percent: float, expected: float
) -> None:
    assert percentile(values, percent) == expected
