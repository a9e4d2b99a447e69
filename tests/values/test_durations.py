"""A duration is seconds or a timedelta everywhere; anything else gets a clear error."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

import pytest

from howdah import BadInput
from howdah.checks.durations import check_length, check_wait

ACCEPTED: list[tuple[Any, timedelta]] = [
    (5, timedelta(seconds=5)),
    (0.5, timedelta(milliseconds=500)),
    (timedelta(minutes=1), timedelta(minutes=1)),
]


@pytest.mark.parametrize(("given", "length"), ACCEPTED)
def test_seconds_and_timedeltas_are_lengths(given: Any, length: timedelta) -> None:
    assert check_wait("delay", given) == check_length("timeout", given) == length


def test_a_wait_may_be_zero_and_a_length_may_not() -> None:
    assert check_wait("delay", 0) == timedelta()
    with pytest.raises(BadInput, match="timeout must be longer than 0, not 0"):
        check_length("timeout", 0)


MUST_BE = "^timeout must be a timedelta or a number of seconds, not"
REFUSED: list[tuple[Any, str]] = [
    ("5m", MUST_BE + r" '5m': write timedelta\(minutes=5\) or 300$"),
    ("1h30m", r"not '1h30m': write timedelta\(minutes=90\) or 5400$"),
    ("500ms", r"not '500ms': write timedelta\(milliseconds=500\) or 0.5$"),
    ("2d", r"write timedelta\(days=2\) or 172800$"),
    ("30", r"not '30': write timedelta\(seconds=30\) or 30$"),
    ("soon", r"not 'soon': write timedelta\(seconds=30\) or 30$"),
    (None, MUST_BE + r" None: write timedelta\(seconds=30\) or 30$"),
    (True, "not True"),
    ([], r"not \[\]"),
    (int, "not <class 'int'>"),
    (math.nan, "^timeout=nan is not a length of time"),
    (math.inf, "^timeout=inf is not a length of time"),
    (10**400, "is not a length of time"),
    (-1, "^timeout=-1 is negative"),
    (timedelta(seconds=-1), r"^timeout=-1.0 s is negative"),
    (timedelta.max, "timeout must be no longer than"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
@pytest.mark.parametrize("check", [check_wait, check_length])
def test_a_bad_duration_is_refused_with_an_example(given: Any, message: str, check: Any) -> None:
    with pytest.raises(BadInput, match=message):
        check("timeout", given)


@pytest.mark.parametrize("given", [-1, math.nan])
def test_a_parameter_of_something_is_named_with_it(given: float) -> None:
    with pytest.raises(BadInput, match=rf"^after={given} in Snooze\(…\) is n"):
        check_wait("after in Snooze(…)", given)


def test_a_value_without_a_working_repr_is_refused_too() -> None:
    class BadRepr:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(BadInput, match="not <BadRepr that cannot be printed>"):
        check_wait("delay", BadRepr())
