"""An interval is that of a median over turns, and the same each time it is computed."""

from __future__ import annotations

from bench.interval import FEWEST, Interval, interval

NINE = [1.1, 1.2, 1.25, 1.3, 1.35, 1.4, 1.45, 1.5, 1.6]


def test_with_nine_turns_the_interval_leaves_out_the_lowest_and_the_highest() -> None:
    assert interval(NINE) == Interval(1.35, (1.2, 1.5))


def test_with_an_even_number_of_turns_the_middle_two_count() -> None:
    assert interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) == Interval(3.5, (1.5, 5.5))


def test_one_bad_turn_does_not_move_the_interval() -> None:
    assert interval([0.01, *NINE[1:-1], 99.0]) == interval(NINE)


def test_turns_that_disagree_have_a_wider_interval() -> None:
    apart = interval([1.35 + 3 * (value - 1.35) for value in NINE])
    assert apart.median == 1.35
    assert apart.bounds is not None
    assert apart.bounds[1] - apart.bounds[0] > 0.89


def test_an_interval_does_not_depend_on_chance() -> None:
    assert interval(NINE) == interval(NINE)


def test_a_few_turns_have_no_interval() -> None:
    assert interval(NINE[: FEWEST - 1]).bounds is None
    assert interval(NINE[:FEWEST]).bounds is not None
