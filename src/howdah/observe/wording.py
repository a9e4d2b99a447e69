"""Wording: times and numbers in the sentences that people read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from howdah.job import Priority

_NAMES = {int(one): one.name.lower() for one in Priority}
_STEPS = ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s"))


def length(of: timedelta) -> str:
    """Word a length of time: 40 ms, 3.2 s, 3m 20s, 5h 12m, 2d 4h."""
    seconds = max(0.0, of.total_seconds())
    for size, unit, smaller, smaller_unit in _STEPS:
        if seconds >= size:
            whole, rest = divmod(int(seconds), size)
            rest //= smaller
            return f"{whole}{unit} {rest}{smaller_unit}" if rest else f"{whole}{unit}"
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms"


def instant(at: datetime) -> str:
    """Word a moment the same for every reader."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def size(of: float) -> str:
    """Word a number of bytes."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if of < 1000 or unit == "GB":
            break
        of /= 1000
    return f"{of:.0f} {unit}" if unit == "bytes" else f"{of:.1f} {unit}"


def jobs(count: object) -> str:
    """Word how many jobs: `1 job`, `10,000+ jobs`."""
    said = f"{count:,}" if isinstance(count, int) else str(count)
    return f"{said} job" if said == "1" else f"{said} jobs"


def waiting(count: object) -> str:
    """Word how many jobs wait: `1 job waits`, `10,000+ jobs wait`."""
    said = jobs(count)
    return f"{said} waits" if said == "1 job" else f"{said} wait"


def some(names: Iterable[str], most: int = 3) -> str:
    """Name a few of many."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more


def amounts(by_name: Mapping[str, int], most: int = 3) -> str:
    """Word what there is most of: `90 resize, 10 mail`."""
    ordered = sorted(by_name.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{jobs:,} {name}" for name, jobs in ordered], most)


def priority(value: int) -> str:
    """Word a priority: its number, and its name where it has one: `100 (discovered)`."""
    return f"{value} ({_NAMES[value]})" if value in _NAMES else str(value)
