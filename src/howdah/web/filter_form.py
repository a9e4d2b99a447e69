"""Filter form: a filter as a form, as a URL, and in words.

Comes before  pages/jobs.py, and every page that links to jobs

The fields of the URL have the names of `observe.Filter`. A value that does not fit is told at its
field and stays as it was typed; the jobs are then not looked for at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from howdah.job import Priority
from howdah.observe import Filter
from howdah.observe.wording import instant
from howdah.states import State
from howdah.web.redact import asks_for_hidden

FIELDS = (
    "status",
    "job_type",
    "priority",
    "worker_id",
    "attempts_from",
    "attempts_to",
    "created_from",
    "created_to",
    "error",
    "fingerprint",
    "payload",
)
_MANY = ("status", "job_type", "payload")
_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_AGO = re.compile(r"(\d{1,5}) ?([smhdw])(?: ago)?", re.IGNORECASE | re.ASCII)
_INT4 = 2**31
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)


class Wrong(Exception):
    """A value does not fit its field; the sentence is for whoever typed it."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A filter as somebody typed it."""

    typed: dict[str, list[str]]  # per field, without the empty ones
    wrong: dict[str, str]  # per field, what is wrong with it
    filter: Filter  # of the fields that fit

    @property
    def query(self) -> dict[str, list[str]]:
        """The fields for a URL that means the same."""
        return dict(self.typed)

    def without(self, *names: str) -> dict[str, list[str]]:
        return {name: said for name, said in self.typed.items() if name not in names}

    def all(self, name: str) -> list[str]:
        return self.typed.get(name, [])

    def one(self, name: str) -> str:
        return next(iter(self.all(name)), "")


def read(
    fields: Iterable[tuple[str, str]], now: datetime, redact: frozenset[str] = frozenset()
) -> Form:
    """Read a filter from the fields of a URL or of a form; `now` is what "2h" is counted from.

    Keys in `redact` cannot be asked for: who may not see a value may not guess it either.
    """
    typed: dict[str, list[str]] = {}
    for name, value in fields:
        if name in FIELDS and value.strip():
            known = typed.setdefault(name, [])
            if name not in _MANY:
                known.clear()
            if value not in known:
                known.append(value)
    readers: dict[str, Callable[[str], Any]] = {
        "status": _status,
        "priority": priority,
        "attempts_from": _attempts,
        "attempts_to": _attempts,
        "created_from": lambda said: _moment(said, now),
        "created_to": lambda said: _moment(said, now),
        "payload": lambda said: _payload(said, redact),
    }
    values: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for name, said in typed.items():
        reader = readers.get(name, str)
        try:
            found = [reader(_text(one)) for one in said]
        except Wrong as error:
            wrong[name] = str(error)
        else:
            values[name] = tuple(found) if name in _MANY else found[0]
    _in_order(values, wrong)
    return Form(typed=typed, wrong=wrong, filter=Filter(**values))


def _in_order(values: dict[str, Any], wrong: dict[str, str]) -> None:
    for first, last, sentence in (
        ("attempts_from", "attempts_to", "The minimum is larger than the maximum: swap the two."),
        ("created_from", "created_to", "The end lies before the beginning: swap the two."),
    ):
        low, high = values.get(first), values.get(last)
        if low is not None and high is not None and high < low:
            wrong[last] = sentence


def _text(said: str) -> str:
    if "\0" in said:
        raise Wrong("A filter cannot contain a NUL character.")
    return said


def _status(said: str) -> State:
    try:
        return State(said.strip().lower())
    except ValueError:
        raise Wrong(f"“{said}” is no state. These are: {', '.join(State)}.") from None


def priority(said: str) -> int:
    named = Priority.__members__.get(said.strip().upper())
    return int(named) if named is not None else whole(said, -_INT4, "A priority")


def _attempts(said: str) -> int:
    return whole(said, 0, "A number of attempts")


def whole(said: str, least: int, what: str) -> int:
    """Read a whole number that the database can hold."""
    try:
        value = int(said) if len(said) < 20 else _INT4
    except ValueError:
        raise Wrong(f"{what} is a whole number, which “{said}” is not.") from None
    if not least <= value < _INT4:
        raise Wrong(f"{what} lies between {least:,} and {_INT4 - 1:,}.")
    return value


def _moment(said: str, now: datetime) -> datetime:
    said = said.strip()
    if ago := _AGO.fullmatch(said):
        at = max(now - int(ago[1]) * _UNITS[ago[2].lower()], _FIRST)
    else:
        try:
            at = datetime.fromisoformat(said.upper().removesuffix("UTC").strip())
        except ValueError:
            raise Wrong(
                f"“{said}” is no time. These are: 2h, 7d, 2026-01-31, 2026-01-31 14:30."
            ) from None
        at = at if at.utcoffset() is not None else at.replace(tzinfo=UTC)
    if not _FIRST <= at <= _LAST:
        raise Wrong("A time lies between the years 1970 and 9000.")
    return at


def _payload(said: str, redact: frozenset[str]) -> tuple[str, str]:
    key, sign, value = said.partition("=")
    key, value = key.strip(), value.strip()
    if not sign or not key:
        raise Wrong(f"Say key=value: “{said}” has no {'key' if sign else '='}.")
    if asks_for_hidden(key, value, redact):
        raise Wrong("What stands under this key is hidden here, so nobody can look for it.")
    if "\\u0000" in value:
        raise Wrong("A filter cannot contain a NUL character.")
    return key, value


def query_of(wanted: Filter) -> dict[str, list[str]]:
    """Return the fields of the URL that means this filter."""
    values: dict[str, list[str]] = {
        "status": [str(state) for state in wanted.status],
        "job_type": list(wanted.job_type),
        "payload": [f"{key}={value}" for key, value in wanted.payload],
    }
    for name in FIELDS:
        if name not in _MANY:
            value = cast("object", getattr(wanted, name))
            written = value.isoformat() if isinstance(value, datetime) else value
            values[name] = [] if written is None else [str(written)]
    return {name: values[name] for name in FIELDS if values[name]}


def in_words(wanted: Filter) -> str:
    """Say which jobs a filter means."""
    states = _either([str(state) for state in wanted.status])
    said = [f"{states} jobs" if states else "jobs"]
    if wanted.job_type:
        word = "type" if len(wanted.job_type) == 1 else "types"
        said.append(f"of the {word} {_either(list(wanted.job_type))}")
    if wanted.priority is not None:
        said.append(f"with priority {wanted.priority}")
    if wanted.worker_id is not None:
        said.append(f"last held by {wanted.worker_id}")
    said += _range("attempt", wanted.attempts_from, wanted.attempts_to)
    if wanted.created_from is not None:
        said.append(f"created since {instant(wanted.created_from)}")
    if wanted.created_to is not None:
        said.append(f"created before {instant(wanted.created_to)}")
    if wanted.error is not None:
        said.append(f"with “{wanted.error}” in the error")
    if wanted.fingerprint is not None:
        said.append(f"that failed like “{wanted.fingerprint}”")
    said += [f"with {key} = {value} in the payload" for key, value in wanted.payload]
    return ("all " if wanted == Filter() else "") + ", ".join([" ".join(said[:2]), *said[2:]])


def _either(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _range(word: str, low: int | None, high: int | None) -> list[str]:
    if low is None and high is None:
        return []
    if high is None:
        return [f"with {low} {word}s or more"]
    return [f"with {high} {word}s at most" if not low else f"with {low} to {high} {word}s"]
