"""Labels: how one job of a type is named in a list, made of its payload: `"{order_id}"`.

A label is text with names of parameters in braces, and nothing else that `str.format` knows: no
attributes, no indexes, no conversions, no format. What is registered is checked here; what is
read back from the database was written by some worker and is trusted by nobody.
"""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping

from howdah.errors import BadInput

LONGEST = 200
SHOWN = 80  # characters of a label that was filled in
_HOW = 'write it like "{%s}": the names of parameters in braces, and nothing else'


def check_label(label: str, job_type: str, parameters: Collection[str]) -> str:
    """Refuse a label that is no template over the parameters of a job type."""
    if not isinstance(label, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"label of {job_type} is text, not {type(label).__name__}")
    how = _HOW % next(iter(parameters), "order_id")
    if not 1 <= len(label) <= LONGEST:
        raise BadInput(f"label of {job_type} has 1 to {LONGEST} characters, not {len(label)}")
    if not label.isprintable():
        raise BadInput(f"label of {job_type} has no control characters, this one does: {label!r}")
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
                f"label of {job_type} names {name!r}, which is no parameter of it "
                f"(it has: {known}); {how}"
            )
    return label


def fill_label(label: str | None, data: Mapping[str, object]) -> str | None:
    """Fill a label with the arguments of one job; None where that cannot be done.

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
    return filled if len(filled) <= SHOWN else filled[: SHOWN - 1] + "…"


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
