"""What a worker computes for a schedule that is due: missed firings, and schedules made in SQL."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from howdah.store.schedules import Due
from howdah.timing import MOST_MISSED
from howdah.upkeep.firing import compute

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def due(**values: Any) -> Due:
    given: dict[str, Any] = {
        "name": "nightly",
        "version": 1,
        "cron": "* * * * *",
        "every": None,
        "tz": "UTC",
        "missed": "last",
        "next_firing": NOON,
        "counts_from": NOON - MINUTE,
        "now": NOON,
    }
    return Due(**{**given, **values})


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_a_firing_in_time_is_done_whatever_is_done_with_missed_ones(missed: str) -> None:
    firing = compute(due(missed=missed, now=NOON + timedelta(seconds=59)))
    assert (firing.times, firing.next) == ([NOON], NOON + MINUTE)


def test_skip_does_no_firing_of_the_outage() -> None:
    firing = compute(due(missed="skip", cron="0 12 * * *", now=NOON + 90 * MINUTE))
    assert (firing.times, firing.next) == ([], NOON + timedelta(days=1))


def test_skip_does_the_firing_whose_minute_is_not_over() -> None:
    firing = compute(due(missed="skip", now=NOON + 90.5 * MINUTE))
    assert (firing.times, firing.next) == ([NOON + 90 * MINUTE], NOON + 91 * MINUTE)


def test_last_does_the_last_firing_of_the_outage() -> None:
    firing = compute(due(now=NOON + 90.5 * MINUTE))
    assert (firing.times, firing.next) == ([NOON + 90 * MINUTE], NOON + 91 * MINUTE)


def test_all_does_every_firing_of_the_outage_up_to_its_bound() -> None:
    firing = compute(due(missed="all", now=NOON + 2 * MINUTE))
    assert firing.times == [NOON, NOON + MINUTE, NOON + 2 * MINUTE]
    firing = compute(due(missed="all", now=NOON + timedelta(days=400)))
    assert len(firing.times) == MOST_MISSED
    assert firing.times[-1] == NOON + timedelta(days=400)


def test_the_first_firing_is_after_the_schedule_was_set() -> None:
    firing = compute(due(next_firing=None, now=NOON + timedelta(days=1)))
    assert (firing.times, firing.next) == ([], NOON)
    firing = compute(due(next_firing=None, cron=None, every=timedelta(hours=2)))
    assert (firing.times, firing.next) == ([], NOON - MINUTE + timedelta(hours=2))


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"cron": "nonsense"}, "cron='nonsense': wrong number of fields; write minute"),
        ({"cron": "0 0 0 0 0"}, "bad day-of-month"),
        ({"tz": "Mars/Olympus"}, "no time zone 'Mars/Olympus'"),
    ],
)
def test_what_cannot_be_computed_becomes_a_problem(values: dict[str, Any], problem: str) -> None:
    firing = compute(due(**values))
    assert firing.problem is not None
    assert problem in firing.problem
    assert firing.times == []


def test_no_further_firing_is_infinity() -> None:
    assert compute(due(next_firing=None, cron="0 0 */31 * MON#2")).next == "infinity"
