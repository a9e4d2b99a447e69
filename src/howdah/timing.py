"""Timing: the times at which a schedule fires: by a cron expression, or every so often.

cronsim reads the expressions, as Debian's cron does. An expression with a fixed hour and minute
fires once a day at both changes of daylight saving time: a time that does not exist fires right
after the gap, one that exists twice fires the first time. One with `*` in these fields fires by
real time. All times go in and out as UTC.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import takewhile
from typing import Any, Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

import msgspec
from cronsim import CronSim, CronSimError

from howdah.checks.durations import check_length
from howdah.checks.near_misses import near_misses
from howdah.errors import BadInput
from howdah.text.reasons import shown

Missed = Literal["skip", "last", "all"]
Overlap = Literal["allow", "skip"]

MOST_MISSED = 100  # firings that missed="all" makes up for at most
IN_TIME = timedelta(minutes=1)  # a firing that is done later than this was missed
SHORTEST = timedelta(seconds=1)
LONGEST = timedelta(days=366)
_HOW = 'minute, hour, day of month, month and day of week, such as "0 3 * * *"'
_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
# How far back to look for the last firings: an expression that fires often has them in the first.
_WINDOWS = tuple(timedelta(minutes=m) for m in (1, 60, 1440, 32 * 1440, 400 * 1440))


class Timing(msgspec.Struct, frozen=True):
    """When a schedule fires; make it with check_timing."""

    cron: str | None
    every: timedelta | None
    tz: str = "UTC"

    def following(self, after: datetime) -> datetime | None:
        """Return the first firing after an instant; None: there is none.

        With `every` the instant must be a firing itself, or the one from which they count.
        """
        if self.every is not None:
            return after + self.every
        return _following(self.cron or "", self.tz, after)

    def newest(self, first: datetime, until: datetime, most: int) -> list[datetime]:
        """Return the last firings, at most so many, from the firing `first` to an instant.

        `first` is one of them also if the expression or the time zone would not say so now.
        """
        if self.every is not None:
            count = (until - first) // self.every
            return [first + n * self.every for n in range(max(0, count - most + 1), count + 1)]
        found: deque[datetime] = deque(maxlen=most)
        if first > until:
            return []
        for start in (*(until - window for window in _WINDOWS), first):
            begin = max(start, first)
            times = _cron_times(self.cron or "", self.tz, begin)
            found = deque([first] if begin == first else (), maxlen=most)
            found.extend(takewhile(lambda at: at <= until, times))
            if len(found) == most or begin == first:
                break
        return list(found)

    def after(self, first: datetime, until: datetime) -> datetime | None:
        """Return the first firing after `until`; `first` is a firing before."""
        if self.every is not None:
            return first + ((until - first) // self.every + 1) * self.every
        return self.following(until)


def _cron_times(cron: str, tz: str, after: datetime) -> Iterator[datetime]:
    """Yield the times of an expression after an instant, rising."""
    last = after
    for local in CronSim(cron, after.astimezone(zone(tz))):
        at = local.astimezone(UTC)
        if at > last:  # in the hour that a clock repeats, cronsim begins with its first pass
            last = at
            yield at


@lru_cache(maxsize=2048)  # many schedules fire at the same times
def _following(cron: str, tz: str, after: datetime) -> datetime | None:
    try:
        return next(_cron_times(cron, tz, after), None)
    except (OverflowError, ValueError):  # beyond the year 9999
        return None


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo:
    """Return a time zone by its name; raises BadInput if this system does not know it."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        pass
    known = available_timezones()
    if not known:
        raise BadInput(
            f"tz={shown(name)}: this system has no time zone database, so it knows only UTC: "
            "install tzdata, with `pip install tzdata` or as a package of the system"
        )
    raise BadInput(
        f"there is no time zone {shown(name)}{near_misses(name, known)}: "
        'write a name such as "Europe/Berlin" or "UTC"'
    )


def check_timing(cron: object, every: object, tz: object = "UTC") -> Timing:
    """Return the times of a schedule; raises BadInput for a bad value."""
    if (cron is None) == (every is None):
        raise BadInput('give cron="0 3 * * *" or every=timedelta(hours=1), one of the two')
    if not isinstance(tz, str):
        raise BadInput(f'tz must be the name of a time zone, such as "UTC", not {shown(tz)}')
    zone(tz)
    if every is not None:
        if tz != "UTC":
            raise BadInput("tz is for cron: every counts real time, whatever the time zone")
        return Timing(None, _check_every(every))
    return _check_cron(cron, tz)


def _check_every(every: Any) -> timedelta:
    length = check_length("every", every, LONGEST)
    if length < SHORTEST:
        raise BadInput(f"every must be at least 1 second, not {length.total_seconds():g} s")
    if length.microseconds % 1000:
        raise BadInput(f"every must be whole milliseconds, not {length.total_seconds()} s")
    return length


def _check_cron(cron: object, tz: str) -> Timing:
    if not isinstance(cron, str):
        raise BadInput(f"cron must be text, not {shown(cron)}: write {_HOW}")
    expression = " ".join(cron.split())
    if (named := _NAMED.get(expression.lower())) is not None:
        raise BadInput(f"cron={shown(cron)}: names are not read; write {shown(named)}")
    if not 1 <= len(expression) <= 200 or not expression.isprintable():
        raise BadInput(f"cron must be text of 1 to 200 characters, not {shown(cron)}: write {_HOW}")
    try:
        CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
    except (CronSimError, ValueError, AssertionError) as error:
        reason = str(error) or "it cannot be read"
        raise BadInput(
            f"cron={shown(cron)}: {reason[0].lower()}{reason[1:]}; write {_HOW}"
        ) from None
    timing = Timing(expression, None, tz)
    if timing.following(datetime.now(UTC)) is None:
        raise BadInput(f"cron={shown(cron)} never fires: no date fits in the next 50 years")
    return timing


def check_missed(missed: object) -> Missed:
    return _one_of("missed", missed, Missed)


def check_overlap(overlap: object) -> Overlap:
    return _one_of("overlap", overlap, Overlap)


def _one_of(what: str, given: object, words: Any) -> Any:
    known = get_args(words)
    if given not in known:
        listed = ", ".join(f'"{word}"' for word in known)
        raise BadInput(f"{what} must be one of {listed}, not {shown(given)}")
    return given
