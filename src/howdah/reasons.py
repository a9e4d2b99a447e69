"""Reasons: what an error or any other value says, as text that the database can keep.

The values come from handlers, so nothing here trusts them: `__str__` may raise, return something
that is no text, or return a subclass of str with methods of its own. Nothing here raises, and the
text is exact `str`, of bounded length, without NUL characters or half surrogate pairs.
"""

from __future__ import annotations

LINE = 2_000  # characters of a reason
TRACEBACK = 16_000


def reason_of(value: object) -> str:
    """Return what a value says of itself, in one reason."""
    try:
        return shortened(value if isinstance(value, str) else str(value), LINE)
    except BaseException:  # SystemExit too: it must not leave the event loop
        return f"<{name_of(type(value))} that cannot be printed>"


def describe(error: BaseException) -> str:
    """Say in one line what went wrong."""
    name, said = name_of(type(error)), reason_of(error)
    return shortened(f"{name}: {said}" if said else name, LINE)


def name_of(kind: type) -> str:
    """Return the name of a class, whatever its metaclass says."""
    try:
        return shortened(type.__dict__["__name__"].__get__(kind), 200)
    except BaseException:
        return "object"


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text, fit to be kept."""
    length = str.__len__(text)
    if length <= limit:
        return _clean(text)
    return f"{_clean(str.__getitem__(text, slice(0, limit - 1)))}…"


def shortened_from_the_end(text: str, limit: int) -> str:
    """Return the end of a text, fit to be kept."""
    length = str.__len__(text)
    if length <= limit:
        return _clean(text)
    return f"…{_clean(str.__getitem__(text, slice(length - limit, length)))}"


def _clean(text: str) -> str:
    # the methods of str itself: a subclass may have others
    return str.encode(text, "utf-8", "replace").decode().replace("\0", "")
