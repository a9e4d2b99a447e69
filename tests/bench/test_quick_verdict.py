"""The verdict of the quick benchmark follows the median of the pairs, and names each loss."""

from __future__ import annotations

import pytest

from bench.quick.verdict import FAILED, INCOMPLETE, PASSED, Comparison, Pair, verdict


def drained(*ratios: float) -> Comparison:
    """Pairs in which the working tree had so many times the rate of the commit."""
    return Comparison("drain_1", [Pair(ratio * 1000, 1000) for ratio in ratios])


def picked_up(*ratios: float) -> Comparison:
    return Comparison("pickup", [Pair(2.0, 2.0 * ratio) for ratio in ratios])


@pytest.mark.parametrize("comparison", [drained(0.84), picked_up(0.84)], ids=["rate", "time"])
def test_a_loss_of_more_than_15_percent_fails_and_the_workload_is_named(
    comparison: Comparison,
) -> None:
    code, sentence = verdict([drained(1.0), comparison])
    assert code == FAILED
    assert sentence == f"Slower by more than 15%: {comparison.title} by 16%."


@pytest.mark.parametrize("comparison", [drained(0.86), picked_up(0.86)], ids=["rate", "time"])
def test_a_smaller_loss_passes(comparison: Comparison) -> None:
    assert verdict([comparison])[0] == PASSED


def test_a_gain_is_never_a_loss() -> None:
    """More jobs per second, and fewer milliseconds."""
    assert Comparison("enqueue_bulk", [Pair(300_000, 100_000)]).ratio == 3.0
    assert Comparison("pickup", [Pair(1.0, 3.0)]).ratio == 3.0
    assert verdict([drained(3.0), picked_up(3.0)])[0] == PASSED


def test_a_few_bad_moments_of_the_machine_are_no_loss() -> None:
    assert verdict([drained(0.3, 1.0, 0.4, 1.02, 0.98, 1.01)])[0] == PASSED


def test_a_few_good_moments_hide_no_loss() -> None:
    assert verdict([drained(0.7, 1.5, 0.72, 0.69, 1.3, 0.71)])[0] == FAILED


def test_a_machine_that_becomes_slower_favours_neither_variant() -> None:
    """Every measurement takes longer than the one before; the order A B B A evens it out."""
    slower = [1000 * 0.9**step for step in range(8)]
    pairs = [
        Pair(slower[0], slower[1]),
        Pair(slower[3], slower[2]),
        Pair(slower[5], slower[4]),
        Pair(slower[6], slower[7]),
    ]
    comparison = Comparison("drain_1", pairs)
    assert comparison.ratio == pytest.approx(1.0, abs=0.01)


def test_a_workload_that_could_not_be_compared_does_not_pass() -> None:
    missing = Comparison("pickup", problem="it lacks something")
    assert verdict([drained(1.0), missing]) == (INCOMPLETE, "Not compared: pickup when idle.")
    assert "not compared: it lacks something" in missing.line


def test_a_loss_is_reported_even_if_something_else_could_not_be_compared() -> None:
    code, sentence = verdict([Comparison("pickup", problem="broken"), drained(0.5)])
    assert code == FAILED
    assert "drain, one process by 50%" in sentence


def test_a_workload_that_failed_half_way_is_not_judged_by_its_first_half() -> None:
    broken = drained(0.5)
    broken.problem = "it stopped"
    assert verdict([broken])[0] == INCOMPLETE


@pytest.mark.parametrize(
    ("comparison", "in_doubt"),
    [
        (drained(1.0, 1.01, 0.99, 1.02), False),
        (drained(0.9, 0.91, 0.92, 0.93), True),
        (drained(0.8, 0.9, 0.8, 0.81), True),
        (drained(1.2, 0.7, 1.1, 1.0), True),
        (drained(0.7, 0.71, 0.69, 0.72), False),
        (drained(), False),
        (Comparison("pickup", [Pair(2.0, 1.0)], problem="broken"), False),
    ],
    ids=[
        "all as fast",
        "near the limit",
        "around the limit",
        "one far off",
        "all agree on a loss",
        "nothing yet",
        "broken",
    ],
)
def test_workloads_whose_pairs_do_not_agree_are_in_doubt(
    comparison: Comparison, in_doubt: bool
) -> None:
    assert comparison.in_doubt is in_doubt


def test_a_line_shows_both_medians_the_ratio_and_its_spread() -> None:
    line = " ".join(drained(0.5, 0.7, 0.6).line.split())
    assert line == "drain, one process 600 jobs/s 1,000 jobs/s 0.60 (0.50-0.70, 3 pairs) LOST"
    assert "2.00 ms" in picked_up(1.0).line
    assert "LOST" not in picked_up(1.0).line
