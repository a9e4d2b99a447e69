"""Limit names: refuse the name of a named limit that nobody has made."""

from __future__ import annotations

from collections.abc import Collection

from howdah.checks.near_misses import listed, near_misses
from howdah.errors import BadInput
from howdah.text.reasons import shown


class UnknownLimit(BadInput):
    """The name of a limit that does not exist."""


def unknown_limit(name: str, known: Collection[str]) -> UnknownLimit:
    """Make the error for the name of a limit that does not exist; it names similar ones."""
    return UnknownLimit(
        f"there is no limit {shown(name)}{near_misses(name, known)}; known: {listed(known)}"
    )
