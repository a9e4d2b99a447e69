"""Reasons: the text of an error or of any other value, as the database can store it.

The values come from handlers and are not trusted: `__str__` may raise, return something that is
not text, or return a subclass of str with its own methods. Nothing here raises. The result is an
exact `str` of limited length, without NUL characters or lone surrogates.
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
_GROUPED = BaseExceptionGroup.__dict__["exceptions"]  # a subclass may override it


def reason_of(value: object) -> str:
    """Return the text of a value."""
    try:
        return shortened(value if isinstance(value, str) else str(value), LINE)
    except BaseException:  # SystemExit too: it must not leave the event loop
        return f"<{name_of(type(value))} that cannot be printed>"


def reason_from(given: object) -> str:
    """Return the text of a reason that was given as any object: text, an exception, data."""
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
    except BaseException:  # not JSON, or the object raises: use its repr
        return _repr_of(given)
    return reason_of(value)


def describe(error: BaseException) -> str:
    """Describe an error in one line; for a group of exceptions, name its members first."""
    name, reason = name_of(type(error)), reason_of(error)
    line = f"{name}: {reason}" if reason else name
    if _is_group(error):
        members = list(itertools.islice(members_of(error), MEMBERS + 1))
        causes = "; ".join(describe(member) for member in members[:MEMBERS])
        line = f"{causes}{'; …' if len(members) > MEMBERS else ''} (in {line})"
    return shortened(line, LINE)


def members_of(error: BaseException) -> Iterator[BaseException]:
    """Yield the exceptions of a group, at any depth, each once; or the error itself."""
    waiting: list[BaseException] = [error]
    seen: set[int] = set()
    while waiting:
        member = waiting.pop()
        if id(member) in seen:
            continue
        seen.add(id(member))
        if _is_group(member):
            waiting.extend(reversed(_GROUPED.__get__(member)))
        else:
            yield member


def _is_group(error: BaseException) -> bool:
    return issubclass(type(error), BaseExceptionGroup)  # isinstance would call code of the error


def shown(value: object) -> str:
    """Return the repr of a value for an error message, short and on one line."""
    try:
        return shortened(" ".join(repr(value).split()), SHOWN)
    except BaseException:
        return f"<{name_of(type(value))} that cannot be printed>"


def _repr_of(value: object) -> str:
    try:
        return shortened(repr(value), LINE)
    except BaseException:
        return reason_of(value)


def name_of(kind: type) -> str:
    """Return the name of a class, even if its metaclass raises."""
    try:
        return shortened(type.__dict__["__name__"].__get__(kind), 200)
    except BaseException:
        return "object"


def shortened(text: str, limit: int) -> str:
    """Return the beginning of a text, as the database can store it."""
    length = str.__len__(text)
    if length <= limit:
        return _clean(text)
    return f"{_clean(str.__getitem__(text, slice(0, limit - 1)))}…"


def shortened_from_the_end(text: str, limit: int) -> str:
    """Return the end of a text, as the database can store it."""
    length = str.__len__(text)
    if length <= limit:
        return _clean(text)
    return f"…{_clean(str.__getitem__(text, slice(length - limit, length)))}"


def _clean(text: str) -> str:
    # the methods of str itself: a subclass may override them
    return str.encode(text, "utf-8", "replace").decode().replace("\0", "")
