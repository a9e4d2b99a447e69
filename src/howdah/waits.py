"""Waits: how long somebody asked to wait, checked before it is used."""

from __future__ import annotations

from datetime import timedelta

from howdah.errors import BadInput

FAR = timedelta(days=365_000)  # a thousand years


def check_wait(what: str, wait: object) -> timedelta:
    """Return a wait as a timedelta; refuse what is no length of time to wait."""
    if isinstance(wait, int | float) and not isinstance(wait, bool):
        try:
            wait = timedelta(seconds=wait)
        except (ValueError, OverflowError):
            raise BadInput(f"{what}={wait!r} is no length of time") from None
    if not isinstance(wait, timedelta):
        raise BadInput(f"{what} is a timedelta or a number of seconds, not {type(wait).__name__}")
    if wait < timedelta():
        raise BadInput(f"{what} must not lie in the past, got {wait}")
    if wait > FAR:
        raise BadInput(f"{what} must be shorter than a thousand years, got {wait}")
    return wait
