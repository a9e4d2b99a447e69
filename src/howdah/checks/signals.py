"""Signals: check the names and the data of signals, and the names of steps."""

from __future__ import annotations

from howdah import payload
from howdah.checks.arguments import check_text
from howdah.errors import BadInput


def check_step_name(what: str, name: object) -> str:
    """Return a name of 1 to 200 characters without control characters."""
    text = check_text(what, name)
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text):
        raise BadInput(f"{what} must have no control characters, this one does: {text!r}")
    return text


def check_signal_name(name: object) -> str:
    """Return the name of a signal."""
    return check_step_name("the name of a signal", name)


def signal_data(data: object) -> str:
    """Encode the data of a signal as JSON; the server checks its size."""
    return payload.encode(data, "the data of the signal", limit=LARGEST)


LARGEST = 16 * 1024 * 1024  # bytes, whatever the option max_payload_bytes allows
