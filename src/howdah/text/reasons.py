"""Reasons: what an error or any other value says, as text that the database can keep.

The values come from handlers, so nothing here trusts them: `__str__` may raise, return something
that is no text, or return a subclass of str with methods of its own. Nothing here raises, and the
text is exact `str`, of bounded length, without NUL characters or half surrogate pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import msgspec

LINE = 2_000  # characters of a reason
TRACEBACK = 16_000
SHOWN = 200  # characters of a value in an error
MEMBERS = 3  # exceptions of a group that are named
_GROUPED = BaseExceptionGroup.__dict__["exceptions"]  # a subclass may say otherwise


def reason_of(value: object) -> str:
    """Return what a value says of itself, in one reason."""
    try:
        return shortened(value if isinstance(value, str) else str(value), LINE)
    except BaseException:  # SystemExit too: it must not leave the event loop
        return f"<{name_of(type(value))} that cannot be printed>"


def reason_from(given: object) -> str:
    """Return a reason that somebody gave as any object: text, an exception, data."""
    value: Any = given
    try:
        if isinstance(value, str):
            return reason_of(value)
        if value is None:
            return ""
        if isinstance(value, BaseException):
            return describe(value)
        if isinstance(value, type):
            return name_of(value)
        if isinstance(value, dict | list | tuple | set | msgspec.Struct):
            return shortened(msgspec.json.encode(value).decode(), LINE)
    except BaseException:  # JSON does not have it, or the object raises: then what it says
        return _said_by(given)
    return reason_of(value)


def describe(error: BaseException) -> str:
    """Say in one line what went wrong; of a group of exceptions, name its members first."""
    name, said = name_of(type(error)), reason_of(error)
    line = f"{name}: {said}" if said else name
    if _is_group(error):
        members = list(itertools.islice(members_of(error), MEMBERS + 1))
        causes = "; ".join(describe(one) for one in members[:MEMBERS])
        line = f"{causes}{'; …' if len(members) > MEMBERS else ''} (in {line})"
    return shortened(line, LINE)


def members_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions that a group holds, at any depth, each once; else the one itself."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if _is_group(one):
            waiting.extend(reversed(_GROUPED.__get__(one)))
        else:
            yield one


def _is_group(error: BaseException) -> bool:
    return issubclass(type(error), BaseExceptionGroup)  # isinstance would ask the error


def shown(value: object) -> str:
    """Return a value as an error shows what came: its repr, short and on one line."""
    try:
        return shortened(" ".join(repr(value).split()), SHOWN)
    except BaseException:
        return f"<{name_of(type(value))} that cannot be printed>"


def _said_by(value: object) -> str:
    try:
        return shortened(repr(value), LINE)
    except BaseException:
        return reason_of(value)


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
