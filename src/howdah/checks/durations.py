"""Durations: check lengths of time that a caller gives.

Every parameter for a length of time takes seconds or a timedelta, and is checked here.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import timedelta
from typing import Final

from howdah.errors import BadInput
from howdah.text.reasons import shown

FAR: Final = timedelta(days=365_000)  # a thousand years
YEAR: Final = timedelta(days=365)

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_UNITS = (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0))
_EXAMPLE = timedelta(seconds=30)


def check_wait(what: str, wait: object, longest: timedelta = FAR) -> timedelta:
    """Return a length of time, 0 or longer; raises BadInput for anything else."""
    given = wait
    if isinstance(wait, int | float) and not isinstance(wait, bool):
        try:
            wait = timedelta(seconds=wait)
        except (ValueError, OverflowError):
            raise BadInput(
                f"{_assigned(what, shown(given))} is not a length of time: {_how_to_write(given)}"
            ) from None
    if not isinstance(wait, timedelta):
        raise BadInput(
            f"{what} must be a timedelta or a number of seconds, not {shown(given)}: "
            f"{_how_to_write(given)}"
        )
    if wait < timedelta():
        raise BadInput(
            f"{_assigned(what, _as_seconds(given))} is negative: give a positive length of time"
        )
    if wait > longest:
        raise BadInput(f"{what} must be no longer than {longest.days} days, not {wait}")
    return wait


def check_length(what: str, length: object, longest: timedelta = FAR) -> timedelta:
    """Return a length of time longer than 0; raises BadInput for anything else."""
    checked = check_wait(what, length, longest)
    if not checked:
        raise BadInput(f"{what} must be longer than 0, not {_as_seconds(length)}")
    return checked


def parse_length(text: str) -> timedelta | None:
    """Parse a length as people type it: 500ms, 30s, 5m, 1h30m, 2d. None if it is not one.

    Raises OverflowError for a length above the maximum of timedelta.
    """
    if not re.fullmatch(f"({_PART.pattern})+", text):
        return None
    return timedelta(seconds=sum(float(n) * _SECONDS[unit] for n, unit in _PART.findall(text)))


def _as_seconds(length: object) -> str:
    return f"{length.total_seconds()} s" if isinstance(length, timedelta) else shown(length)


def _assigned(what: str, value: str) -> str:
    """Return `timeout=-1`, and `after=-1 in Snooze(…)` for a parameter of something."""
    name, within, where = what.partition(" in ")
    return f"{name}={value}{within}{where}"


def _how_to_write(given: object) -> str:
    """Say how to write the length that was probably meant."""
    guess = _EXAMPLE
    if isinstance(given, str) and len(given) <= 50:
        with suppress(OverflowError):
            guess = parse_length(given) or parse_length(f"{given}s") or _EXAMPLE
    seconds = guess.total_seconds()
    for unit, size in _UNITS:
        if seconds >= size and seconds % size == 0:
            return f"write timedelta({unit}={seconds / size:g}) or {seconds:.15g}"
    return f"write timedelta(milliseconds={seconds * 1000:g}) or {seconds:g}"
