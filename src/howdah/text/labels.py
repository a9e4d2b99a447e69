"""Labels: templates that name single jobs in a list, filled from the payload: `"{order_id}"`.

A label is text with names of parameters in braces. Nothing else of `str.format` is allowed: no
attributes, indexes, conversions or formats. Labels are checked when a type is registered. A label
from the database was written by any worker and is not trusted.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping

from howdah.errors import BadInput
from howdah.text.wording import shorten

LONGEST = 200
SHOWN = 80  # characters of a filled label
_HOW = 'write it like "{%s}": the names of parameters in braces, and nothing else'


def check_label(label: str, job_type: str, parameters: Collection[str]) -> str:
    """Refuse a label that is not a template over the parameters of a job type."""
    if not isinstance(label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"label of {job_type} must be text, not {type(label).__name__}")
    how = _HOW % next(iter(parameters), "order_id")
    if not 1 <= len(label) <= LONGEST:
        raise BadInput(f"label of {job_type} must have 1 to {LONGEST} characters, not {len(label)}")
    if not label.isprintable():
        raise BadInput(f"label of {job_type} must not have control characters: {label!r}")
    try:
        fields = [name for _, name in _parts(label) if name is not None]
    except ValueError as error:
        raise BadInput(f"label of {job_type} is {label!r}: {error}; {how}") from None
    if not fields:
        raise BadInput(f"label of {job_type} is {label!r}, the same for all its jobs; {how}")
    for name in fields:
        if name not in parameters:
            known = ", ".join(parameters) or "none"
            raise BadInput(
                f"label of {job_type} names {name!r}, which is not a parameter "
                f"(it has: {known}); {how}"
            )
    return label


def fill_label(label: str | None, data: Mapping[str, object]) -> str | None:
    """Fill a label with the arguments of one job; None if it has no valid label.

    Only text, numbers and booleans are filled in; a missing argument is shown as `…`.
    """
    if label is None or len(label) > LONGEST:
        return None
    try:
        parts = _parts(label)
    except ValueError:
        return None
    filled = "".join(
        literal + ("" if name is None else _short(data.get(name))) for literal, name in parts
    )
    return shorten(filled, SHOWN)


def _short(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)[:SHOWN] if isinstance(value, str | int | float) else "…"


def _parts(label: str) -> list[tuple[str, str | None]]:
    """Split a label into literal text and the name that follows it; raises ValueError."""
    parts: list[tuple[str, str | None]] = []
    for literal, name, form, conversion in string.Formatter().parse(label):
        if name is not None:
            if not name.isidentifier():
                raise ValueError(f"{{{name}}} is not the name of a parameter")
            if form or conversion:
                raise ValueError(f"{{{name}}} has a format or a conversion")
        parts.append((literal, name))
    return parts
