"""The times of cron expressions and intervals, also where clocks change and months end."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from howdah import BadInput, timing
from howdah.timing import MOST_MISSED, Timing, check_missed, check_overlap, check_timing

BERLIN = "Europe/Berlin"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def times(cron: str, after: str, count: int, tz: str = "UTC") -> list[str]:
    """Return the next firings as a worker computes them: one after the other."""
    schedule = check_timing(cron, None, tz)

    def each() -> Any:
        at = utc(after)
        while (following := schedule.following(at)) is not None:
            yield following
            at = following

    return [at.strftime("%Y-%m-%d %H:%M") for at in islice(each(), count)]


def test_a_time_that_does_not_exist_fires_once_after_the_gap() -> None:
    # on 2026-03-29 clocks go from 02:00 +01:00 to 03:00 +02:00
    assert times("30 2 * * *", "2026-03-28", 3, BERLIN) == [
        "2026-03-28 01:30",
        "2026-03-29 01:00",
        "2026-03-30 00:30",
    ]


def test_a_time_that_exists_twice_fires_once() -> None:
    # on 2026-10-25 clocks go from 03:00 +02:00 to 02:00 +01:00
    assert times("30 2 * * *", "2026-10-24", 3, BERLIN) == [
        "2026-10-24 00:30",
        "2026-10-25 00:30",
        "2026-10-26 01:30",
    ]


def test_a_schedule_that_begins_in_the_repeated_hour_does_not_go_back() -> None:
    schedule = check_timing("30 2 * * *", None, BERLIN)
    second_pass = utc("2026-10-25 01:15")  # 02:15 +01:00; 02:30 +02:00 was before
    assert schedule.following(second_pass) == utc("2026-10-26 01:30")


def test_an_hourly_expression_fires_every_real_hour_at_both_changes() -> None:
    for day in ("2026-03-29", "2026-10-25"):
        found = times("0 * * * *", f"{day} 00:00", 3, BERLIN)
        assert found == [f"{day} 01:00", f"{day} 02:00", f"{day} 03:00"]


def test_leap_days_and_month_ends() -> None:
    assert times("0 0 29 2 *", "2026-01-01", 2) == ["2028-02-29 00:00", "2032-02-29 00:00"]
    assert times("0 0 29 2 *", "2097-01-01", 1) == ["2104-02-29 00:00"]
    assert times("0 0 31 * *", "2026-01-01", 3) == [
        "2026-01-31 00:00",
        "2026-03-31 00:00",
        "2026-05-31 00:00",
    ]
    assert times("0 0 L * *", "2028-01-01", 3) == [
        "2028-01-31 00:00",
        "2028-02-29 00:00",
        "2028-03-31 00:00",
    ]


def test_an_expression_with_six_fields_has_seconds() -> None:
    schedule = check_timing("*/20 * * * * *", None)
    assert schedule.following(utc("2026-01-01 00:00:05")) == utc("2026-01-01 00:00:20")


@pytest.mark.parametrize("cron", ["* * * * *", "0 * * * *", "30 2 * * *", "0 0 29 2 *"])
@pytest.mark.parametrize("until", ["2026-03-29 01:30", "2026-10-25 01:30", "2028-03-01 00:00"])
def test_the_newest_firings_are_the_last_of_all(cron: str, until: str) -> None:
    schedule = check_timing(cron, None, BERLIN)
    first = schedule.following(utc(until) - timedelta(days=4))
    assert first is not None
    every: list[datetime] = []
    at: datetime | None = first
    while at is not None and at <= utc(until):
        every.append(at)
        at = schedule.following(at)
    assert schedule.newest(first, utc(until), MOST_MISSED) == every[-MOST_MISSED:]
    assert schedule.newest(first, utc(until), 1) == every[-1:]


def test_every_keeps_its_phase() -> None:
    schedule = check_timing(None, timedelta(hours=1))
    first = utc("2026-01-01 00:07")
    assert schedule.newest(first, utc("2026-01-01 03:06"), 2) == [
        utc("2026-01-01 01:07"),
        utc("2026-01-01 02:07"),
    ]
    assert schedule.newest(first, utc("2027-01-01"), MOST_MISSED)[-1] == utc("2026-12-31 23:07")
    assert schedule.after(first, utc("2026-01-01 03:07")) == utc("2026-01-01 04:07")


def test_a_date_that_never_comes_has_no_following() -> None:
    assert Timing("0 0 */31 * MON#2", None).following(utc("2026-01-01")) is None


BAD: list[tuple[Any, Any, Any, str]] = [
    (None, None, "UTC", "one of the two"),
    ("0 3 * * *", timedelta(1), "UTC", "one of the two"),
    (5, None, "UTC", "cron must be text, not 5"),
    ("", None, "UTC", "1 to 200 characters"),
    ("1," * 150 + "1 * * * *", None, "UTC", "1 to 200 characters"),
    ("0 3 * *", None, "UTC", "wrong number of fields"),
    ("0 25 * * *", None, "UTC", "bad hour"),
    ("61 3 * * *", None, "UTC", "bad minute"),
    ("0 3 * * FRY", None, "UTC", "bad day-of-week"),
    ("0 3 */0 * *", None, "UTC", "bad day-of-month"),
    ("0 3 30 2 *", None, "UTC", "bad day-of-month"),
    ("0 0 */31 * MON#2", None, "UTC", "never fires"),
    ("@daily", None, "UTC", "write '0 0 \\* \\* \\*'"),
    ("0 3 * * *", None, "Europe/Berln", "did you mean 'Europe/Berlin'"),
    ("0 3 * * *", None, "Europe", "no time zone 'Europe'"),
    ("0 3 * * *", None, "../etc/passwd", "no time zone"),
    ("0 3 * * *", None, "", "no time zone ''"),
    ("0 3 * * *", None, None, "tz must be the name"),
    (None, timedelta(1), BERLIN, "tz is for cron"),
    (None, "1h", "UTC", "every must be a timedelta"),
    (None, 0, "UTC", "longer than 0"),
    (None, timedelta(days=-1), "UTC", "negative"),
    (None, 0.5, "UTC", "at least 1 second, not 0.5 s"),
    (None, timedelta(days=367), "UTC", "no longer than 366 days"),
    (None, timedelta(seconds=1, microseconds=5), "UTC", "whole milliseconds"),
]


@pytest.mark.parametrize(("cron", "every", "tz", "message"), BAD)
def test_bad_times_are_refused(cron: Any, every: Any, tz: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        check_timing(cron, every, tz)


def test_bad_words_are_refused() -> None:
    with pytest.raises(BadInput, match='missed must be one of "skip", "last", "all", not'):
        check_missed("some")
    with pytest.raises(BadInput, match='overlap must be one of "allow", "skip", not None'):
        check_overlap(None)


def test_a_system_without_time_zones_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(timing, "ZoneInfo", missing)
    monkeypatch.setattr(timing, "available_timezones", set)
    timing.zone.cache_clear()
    try:
        with pytest.raises(BadInput, match="install tzdata"):
            check_timing("0 3 * * *", None, BERLIN)
        assert check_timing("0 3 * * *", None).following(utc("2026-01-01")) is not None
    finally:
        timing.zone.cache_clear()
