"""Wording: how lengths of time, ages, rates, sizes, counts and priorities are written for people.

Comes before  cli/, top/, web/ and the sentences of observe/

A value is written in the same way wherever it is shown. A narrow column uses the short form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from howdah.job import Priority

_PRIORITY_NAMES = {int(priority): priority.name.lower() for priority in Priority}
_UNITS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def length(of: timedelta) -> str:
    """Write a length of time: 4.2 ms, 40 ms, 3.2 s, 3m 20s, 5h 12m, 2d 4h."""
    seconds = max(0.0, of.total_seconds())
    for size, unit, smaller_size, smaller_unit in _UNITS:
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            rest //= smaller_size
            return f"{whole}{unit} {rest}{smaller_unit}" if rest else f"{whole}{unit}"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    milliseconds = seconds * 1000
    return f"{milliseconds:.1f} ms" if 0 < milliseconds < 9.95 else f"{milliseconds:.0f} ms"


def typed_length(of: timedelta) -> str:
    """Write an exact length as people type it: 500ms, 90s, 5m, 2d."""
    seconds = of.total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds * 1000:.15g}ms"


def short_length(of: timedelta) -> str:
    """Write a length of time in at most five characters: 40ms, 3.2s, 12s, 5m, 3h, 2d."""
    seconds = max(0.0, of.total_seconds())
    for size, unit, _, _ in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    if seconds >= 9.95:
        return f"{seconds:.0f}s"
    return f"{seconds:.1f}s" if seconds >= 0.9995 else f"{seconds * 1000:.0f}ms"


def age(of: timedelta) -> str:
    """Write for how long something has existed, short: `now`, or as `short_length` does."""
    return "now" if of < timedelta(seconds=1) else short_length(of)


def ago(at: datetime, now: datetime) -> str:
    """Write an instant by its distance from now: `3m 20s ago`, `in 5h 12m`."""
    return f"in {length(at - now)}" if at > now else f"{length(now - at)} ago"


def instant(at: datetime) -> str:
    """Write an instant in UTC, so that it is the same for every reader."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def per_second(jobs: float) -> str:
    """Write a number of jobs per second without its unit: 0.1, 12, 1,200."""
    return f"{jobs:,.0f}" if jobs >= 10 else f"{jobs:.1f}"


def rate(jobs_per_second: float) -> str:
    """Write a throughput with its unit: `12,300/s`, `0.5/s`, `3/min`."""
    if jobs_per_second >= 0.5:
        return f"{per_second(jobs_per_second)}/s"
    return f"{jobs_per_second * 60:.0f}/min"


def progress_rate(percent_per_second: float) -> str:
    """Write how fast progress grows, in the smallest unit in which that is 1% or more."""
    for seconds, unit in ((1, "second"), (60, "minute"), (3600, "hour")):
        if percent_per_second * seconds >= 1:
            return f"{percent_per_second * seconds:.1f}% per {unit}"
    return f"{percent_per_second * 86400:.1f}% per day"


def percent(share: float) -> str:
    """Write a share: 12%, 1.2%, <0.1%. Only zero is written as 0%."""
    if 0 < share < 0.001:
        return "<0.1%"
    return f"{share:.0%}" if share >= 0.1 or not share else f"{share:.1%}"


def size(of: float) -> str:
    """Write a number of bytes: 512 bytes, 1.5 kB, 2.0 GB."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if of < 1000 or unit == "GB":
            break
        of /= 1000
    return f"{of:.0f} {unit}" if unit == "bytes" else f"{of:.1f} {unit}"


def jobs(count: object) -> str:
    """Write how many jobs: `1 job`, `10,000+ jobs`."""
    number = f"{count:,}" if isinstance(count, int) else str(count)
    return f"{number} job" if number == "1" else f"{number} jobs"


def waiting(count: object) -> str:
    """Write how many jobs wait: `1 job waits`, `10,000+ jobs wait`."""
    subject = jobs(count)
    return f"{subject} waits" if subject == "1 job" else f"{subject} wait"


def shorten(text: str, most: int) -> str:
    """Cut a text to at most so many characters; `…` stands for the rest."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def some(names: Iterable[str], most: int = 3) -> str:
    """List the first names and count the rest: `a, b, c and 4 more`."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def amounts(by_name: Mapping[str, int], most: int = 3) -> str:
    """List the largest amounts: `90 resize, 10 mail`."""
    ordered = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{jobs:,} {name}" for name, jobs in ordered], most)


def priority(value: int) -> str:
    """Write a priority with its name, if it has one: `100 (discovered)`."""
    return f"{value} ({_PRIORITY_NAMES[value]})" if value in _PRIORITY_NAMES else str(value)


def fires(cron: str | None, every: timedelta | None, tz: str) -> str:
    """Write when a schedule fires: `0 3 * * * Europe/Berlin`, `every 5m`."""
    if every is not None:
        return f"every {typed_length(every)}"
    return f"{cron} {tz}"


def key_slots(at_once: int | None, ordered: bool, fair: bool) -> str:
    """Write how many slots each key of a type has."""
    if fair:
        return "keys take turns"
    if at_once is None:
        return "a key has any number of slots"
    slots = "1 slot" if at_once == 1 else f"{at_once:,} slots"
    return f"a key has {slots}{', in the order of enqueueing' if ordered else ''}"
