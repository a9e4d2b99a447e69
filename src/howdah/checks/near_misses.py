"""Near misses: name what was perhaps meant, for the error about a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from howdah.text.reasons import shown


def near_misses(name: str, known: Collection[str]) -> str:
    """Return ` (did you mean …?)` for similar names, else nothing."""
    similar = difflib.get_close_matches(name, known, n=3)
    return f" (did you mean {' or '.join(map(shown, similar))}?)" if similar else ""


def listed(known: Collection[str]) -> str:
    """Return the first names, for an error."""
    return ", ".join(map(shown, sorted(known)[:20])) or "none"
