"""The verdict of the quick benchmark follows the median of the pairs, and names what was lost."""

from __future__ import annotations

import pytest

from bench.quick.judge import FAILED, INCOMPLETE, PASSED, Compared, Pair, verdict


def drained(*ratios: float) -> Compared:
    """Pairs in which the working tree did so many times what the commit did."""
    return Compared("drain_1", [Pair(ratio * 1000, 1000) for ratio in ratios])


def picked_up(*ratios: float) -> Compared:
    return Compared("pickup", [Pair(2.0, 2.0 * ratio) for ratio in ratios])


@pytest.mark.parametrize("compared", [drained(0.84), picked_up(0.84)], ids=["rate", "time"])
def test_a_loss_of_more_than_15_percent_fails_and_the_work_is_named(compared: Compared) -> None:
    code, said = verdict([drained(1.0), compared])
    assert code == FAILED
    assert said == f"Slower by more than 15%: {compared.title} by 16%."


@pytest.mark.parametrize("compared", [drained(0.86), picked_up(0.86)], ids=["rate", "time"])
def test_a_smaller_loss_passes(compared: Compared) -> None:
    assert verdict([compared])[0] == PASSED


def test_a_gain_is_never_a_loss() -> None:
    """More jobs per second, and fewer milliseconds."""
    assert Compared("enqueue_bulk", [Pair(300_000, 100_000)]).ratio == 3.0
    assert Compared("pickup", [Pair(1.0, 3.0)]).ratio == 3.0
    assert verdict([drained(3.0), picked_up(3.0)])[0] == PASSED


def test_a_few_bad_moments_of_the_machine_are_no_loss() -> None:
    assert verdict([drained(0.3, 1.0, 0.4, 1.02, 0.98, 1.01)])[0] == PASSED


def test_a_few_good_moments_hide_no_loss() -> None:
    assert verdict([drained(0.7, 1.5, 0.72, 0.69, 1.3, 0.71)])[0] == FAILED


def test_a_machine_that_grows_slower_favours_nobody() -> None:
    """Every measurement takes longer than the one before; the order A B B A evens it out."""
    slower = [1000 * 0.9**step for step in range(8)]
    pairs = [
        Pair(slower[0], slower[1]),
        Pair(slower[3], slower[2]),
        Pair(slower[5], slower[4]),
        Pair(slower[6], slower[7]),
    ]
    compared = Compared("drain_1", pairs)
    assert compared.ratio == pytest.approx(1.0, abs=0.01)


def test_what_could_not_be_compared_is_no_pass() -> None:
    missing = Compared("pickup", problem="it lacks something")
    assert verdict([drained(1.0), missing]) == (INCOMPLETE, "Not compared: pickup when idle.")
    assert "not compared: it lacks something" in missing.line


def test_a_loss_is_told_even_if_something_else_could_not_be_compared() -> None:
    code, said = verdict([Compared("pickup", problem="broken"), drained(0.5)])
    assert code == FAILED
    assert "drain, one process by 50%" in said


def test_a_work_that_broke_half_way_is_not_judged_by_its_first_half() -> None:
    broken = drained(0.5)
    broken.problem = "it stopped"
    assert verdict([broken])[0] == INCOMPLETE


@pytest.mark.parametrize(
    ("compared", "in_doubt"),
    [
        (drained(1.0, 1.01, 0.99, 1.02), False),
        (drained(0.9, 0.91, 0.92, 0.93), True),
        (drained(0.8, 0.9, 0.8, 0.81), True),
        (drained(1.2, 0.7, 1.1, 1.0), True),
        (drained(0.7, 0.71, 0.69, 0.72), False),
        (drained(), False),
        (Compared("pickup", [Pair(2.0, 1.0)], problem="broken"), False),
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
def test_works_whose_pairs_do_not_agree_are_in_doubt(compared: Compared, in_doubt: bool) -> None:
    assert compared.in_doubt is in_doubt


def test_a_line_shows_both_medians_the_ratio_and_its_spread() -> None:
    line = " ".join(drained(0.5, 0.7, 0.6).line.split())
    assert line == "drain, one process 600 jobs/s 1,000 jobs/s 0.60 (0.50-0.70, 3 pairs) LOST"
    assert "2.00 ms" in picked_up(1.0).line
    assert "LOST" not in picked_up(1.0).line
