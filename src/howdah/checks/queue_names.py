"""Queue names: the name of a set of job types, so that workers can be dedicated to it.

A type that names no queue is in the queue `default`. A name has no comma, because lists of names
are written with commas on the command line.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from howdah.errors import BadInput
from howdah.text.reasons import shown

DEFAULT_QUEUE = "default"
LONGEST = 200  # characters of a name


class UnknownQueue(BadInput):
    """The name of a queue that no job type has."""


def check_queue_name(name: object, what: str = "queue") -> str:
    """Return the name of a queue; refuses a name that the database would refuse."""
    if not isinstance(name, str):
        raise BadInput(f'{what} must be a name, such as "media", not {shown(name)}')
    if not 1 <= len(name) <= LONGEST:
        raise BadInput(f"{what} must have 1 to {LONGEST} characters, not {len(name)}")
    if not name.isprintable() or "," in name or name != name.strip():
        raise BadInput(
            f"{what} must have no comma, no control character and no space at its ends, "
            f"not {shown(name)}"
        )
    return name


def refuse_unknown_queues(
    names: Iterable[str], known: Collection[str], what: str = "queues"
) -> None:
    """Refuse the name of a queue that no job type has; names similar ones."""
    for name in names:
        if name in known:
            continue
        similar = difflib.get_close_matches(name, known, n=3)
        hint = f" (did you mean {' or '.join(map(shown, similar))}?)" if similar else ""
        listed = ", ".join(sorted(known)[:20]) or "none"
        raise UnknownQueue(
            f"{what}: no job type has the queue {shown(name)}{hint}; known: {listed}"
        )
