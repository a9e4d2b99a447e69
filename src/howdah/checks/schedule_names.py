"""Schedule names: refuse a name that the database would refuse, or that no schedule has."""

from __future__ import annotations

from collections.abc import Collection

from howdah.checks.arguments import check_text
from howdah.checks.near_misses import listed, near_misses
from howdah.errors import BadInput
from howdah.text.reasons import shown


class UnknownSchedule(BadInput):
    """The name of a schedule that does not exist."""


def unknown_schedule(name: str, known: Collection[str]) -> UnknownSchedule:
    """Make the error for the name of a schedule that does not exist; it names similar ones."""
    return UnknownSchedule(
        f"there is no schedule {shown(name)}{near_misses(name, known)}; known: {listed(known)}"
    )


def check_schedule_name(name: object) -> str:
    """Return the name of a schedule."""
    checked = check_text("the name of a schedule", name)
    if any(ord(c) < 32 or 127 <= ord(c) < 160 for c in checked):
        raise BadInput(f"the name of a schedule must have no control character, not {shown(name)}")
    return checked
