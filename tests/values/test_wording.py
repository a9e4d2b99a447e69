"""Lengths, ages, rates, shares and priorities are written in one way, wherever they are shown."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from howdah.text import wording

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "long", "short"),
    [
        (0.0, "0 ms", "0ms"),
        (0.0042, "4.2 ms", "4ms"),
        (0.04, "40 ms", "40ms"),
        (3.2, "3.2 s", "3.2s"),
        (12.0, "12.0 s", "12s"),
        (200.0, "3m 20s", "3m"),
        (180.0, "3m", "3m"),
        (5 * 3600 + 12 * 60, "5h 12m", "5h"),
        (2 * 86400 + 4 * 3600, "2d 4h", "2d"),
        (-1.0, "0 ms", "0ms"),
    ],
)
def test_a_length_of_time_has_a_long_and_a_short_form(
    seconds: float, long: str, short: str
) -> None:
    duration = timedelta(seconds=seconds)
    assert wording.length(duration) == long
    assert wording.short_length(duration) == short


def test_an_instant_is_written_as_its_distance_from_now() -> None:
    assert wording.ago(NOW - timedelta(seconds=200), NOW) == "3m 20s ago"
    assert wording.ago(NOW + timedelta(hours=5), NOW) == "in 5h"
    assert wording.age(timedelta(seconds=0.9)) == "now"
    assert wording.age(timedelta(seconds=90)) == "2m"


def test_small_rates_and_shares_are_never_written_as_zero() -> None:
    assert [wording.rate(jobs) for jobs in (12_300.0, 0.5, 0.05)] == ["12,300/s", "0.5/s", "3/min"]
    assert [wording.per_second(jobs) for jobs in (1_200.0, 0.1)] == ["1,200", "0.1"]
    shares = (0.0, 0.0004, 0.012, 0.12, 1.0)
    assert [wording.percent(share) for share in shares] == ["0%", "<0.1%", "1.2%", "12%", "100%"]
    rates = [wording.progress_rate(percent) for percent in (12.5, 0.5, 0.01, 0.0001)]
    assert rates == ["12.5% per second", "30.0% per minute", "36.0% per hour", "8.6% per day"]


def test_a_long_text_is_cut() -> None:
    assert (wording.shorten("abcd", 4), wording.shorten("abcde", 4)) == ("abcd", "abc…")


def test_counts_and_priorities_are_written_with_words() -> None:
    assert (wording.jobs(1), wording.jobs(10_000)) == ("1 job", "10,000 jobs")
    assert (wording.waiting(1), wording.waiting(2)) == ("1 job waits", "2 jobs wait")
    assert (wording.priority(100), wording.priority(7)) == ("100 (discovered)", "7")
    assert wording.amounts({"mail": 10, "resize": 90}) == "90 resize, 10 mail"
    assert [wording.size(size) for size in (512, 1_500, 2e9)] == ["512 bytes", "1.5 kB", "2.0 GB"]
