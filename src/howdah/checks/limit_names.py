"""Limit names: refuse the name of a named limit that nobody has made."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from howdah.errors import BadInput
from howdah.text.reasons import shown


class UnknownLimit(BadInput):
    """The name of a limit that does not exist."""


def unknown_limit(name: str, known: Collection[str]) -> UnknownLimit:
    """Make the error for the name of a limit that does not exist; it names similar ones."""
    similar = difflib.get_close_matches(name, known, n=3)
    hint = f" (did you mean {' or '.join(map(shown, similar))}?)" if similar else ""
    listed = ", ".join(map(shown, sorted(known)[:20])) or "none"
    return UnknownLimit(f"there is no limit {shown(name)}{hint}; known: {listed}")
