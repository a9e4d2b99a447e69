"""Filter form: a filter as a form, as a URL and as a sentence.

The query fields have the names of `observe.Filter`. An invalid value is reported at its field and
stays as it was typed; the jobs are then not queried.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import msgspec

from howdah.errors import BadInput
from howdah.job import Priority
from howdah.observe import Filter
from howdah.states import State
from howdah.text.wording import instant
from howdah.waits_for import WaitsFor
from howdah.web.redact import asks_for_hidden, refuse_hidden_keys

FIELDS = (
    "status",
    "job_type",
    "queue",
    "priority",
    "worker_id",
    "key",
    "limited_by",
    "waits_for",
    "attempts_from",
    "attempts_to",
    "created_from",
    "created_to",
    "error",
    "fingerprint",
    "payload",
)
_MANY = ("status", "job_type", "queue", "waits_for", "payload")
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


class InvalidValue(Exception):
    """A value is not valid for its field; the message is shown to the user."""


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """A filter as the user typed it."""

    typed: dict[str, list[str]]  # by field, without empty values
    invalid: dict[str, str]  # by field: what is wrong
    filter: Filter  # of the valid fields

    @property
    def query(self) -> dict[str, list[str]]:
        """The query fields of a URL with this filter."""
        return dict(self.typed)

    def without(self, *names: str) -> dict[str, list[str]]:
        return {name: values for name, values in self.typed.items() if name not in names}

    def all(self, name: str) -> list[str]:
        return self.typed.get(name, [])

    def first(self, name: str) -> str:
        return next(iter(self.all(name)), "")


def read(
    fields: Iterable[tuple[str, str]], now: datetime, redact: frozenset[str] = frozenset()
) -> Form:
    """Read a filter from the fields of a URL or a form. "2h" means two hours before `now`.

    Keys in `redact` cannot be searched, because a search would reveal their values.
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
        "created_from": lambda text: _moment(text, now),
        "created_to": lambda text: _moment(text, now),
        "key": lambda text: _key(text, None, redact),
        "limited_by": lambda text: _key(None, text, redact),
        "waits_for": _waits_for,
        "payload": lambda text: _payload(text, redact),
    }
    values: dict[str, Any] = {}
    invalid: dict[str, str] = {}
    for name, texts in typed.items():
        reader = readers.get(name, str)
        try:
            parsed = [reader(_text(text)) for text in texts]
        except InvalidValue as error:
            invalid[name] = str(error)
        else:
            values[name] = tuple(parsed) if name in _MANY else parsed[0]
    _check_order(values, invalid)
    return Form(typed=typed, invalid=invalid, filter=Filter(**values))


def _check_order(values: dict[str, Any], invalid: dict[str, str]) -> None:
    for first, last, sentence in (
        ("attempts_from", "attempts_to", "The minimum is larger than the maximum: swap the two."),
        ("created_from", "created_to", "The end is before the beginning: swap the two."),
    ):
        low, high = values.get(first), values.get(last)
        if low is not None and high is not None and high < low:
            invalid[last] = sentence


def _text(text: str) -> str:
    if "\0" in text:
        raise InvalidValue("A filter cannot contain a NUL character: remove it.")
    return text


def _status(text: str) -> State:
    try:
        return State(text.strip().lower())
    except ValueError:
        raise InvalidValue(f"“{text}” is no state. The states are: {', '.join(State)}.") from None


def _waits_for(text: str) -> WaitsFor:
    try:
        return WaitsFor(text.strip().lower())
    except ValueError:
        known = ", ".join(WaitsFor)
        raise InvalidValue(f"Jobs do not wait for “{text}”. They wait for: {known}.") from None


def _key(key: str | None, limited_by: str | None, redact: frozenset[str]) -> str:
    try:
        refuse_hidden_keys(key, limited_by, redact)
    except BadInput as error:
        raise InvalidValue(f"{str(error)[0].upper()}{str(error)[1:]}.") from None
    return key or limited_by or ""


def priority(text: str) -> int:
    named = Priority.__members__.get(text.strip().upper())
    return int(named) if named is not None else whole(text, -_INT4, "A priority")


def _attempts(text: str) -> int:
    return whole(text, 0, "A number of attempts")


def whole(text: str, least: int, what: str) -> int:
    """Read a whole number that the database can hold."""
    try:
        value = int(text) if len(text) < 20 else _INT4
    except ValueError:
        raise InvalidValue(f"{what} must be a whole number, and “{text}” is not.") from None
    if not least <= value < _INT4:
        raise InvalidValue(f"{what} must be between {least:,} and {_INT4 - 1:,}.")
    return value


def _moment(text: str, now: datetime) -> datetime:
    text = text.strip()
    if ago := _AGO.fullmatch(text):
        at = max(now - int(ago[1]) * _UNITS[ago[2].lower()], _FIRST)
    else:
        try:
            at = datetime.fromisoformat(text.upper().removesuffix("UTC").strip())
        except ValueError:
            raise InvalidValue(
                f"“{text}” is no time. Examples: 2h, 7d, 2026-01-31, 2026-01-31 14:30."
            ) from None
        at = at if at.utcoffset() is not None else at.replace(tzinfo=UTC)
    if not _FIRST <= at <= _LAST:
        raise InvalidValue("A time must be between the years 1970 and 9000.")
    return at


def _payload(text: str, redact: frozenset[str]) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    key, value = key.strip(), value.strip()
    if not sign or not key:
        raise InvalidValue(f"Enter key=value: “{text}” has no {'key' if sign else '='}.")
    if asks_for_hidden(key, value, redact):
        raise InvalidValue("The value of this key is redacted here: filter by another key.")
    if "\\u0000" in value:
        raise InvalidValue("A filter cannot contain a NUL character: remove it.")
    return key, value


def query_of(wanted: Filter) -> dict[str, list[str]]:
    """Return the query fields of a URL with this filter."""
    values: dict[str, list[str]] = {
        "status": [str(state) for state in wanted.status],
        "job_type": list(wanted.job_type),
        "queue": list(wanted.queue),
        "waits_for": [str(each) for each in wanted.waits_for],
        "payload": [f"{key}={value}" for key, value in wanted.payload],
    }
    for name in FIELDS:
        if name not in _MANY:
            value = cast("object", getattr(wanted, name))
            text = value.isoformat() if isinstance(value, datetime) else value
            values[name] = [] if text is None else [str(text)]
    return {name: values[name] for name in FIELDS if values[name]}


def in_words(wanted: Filter) -> str:
    """Describe a filter in a sentence."""
    states = _or([str(state) for state in wanted.status])
    parts = [f"{states} jobs" if states else "jobs"]
    if wanted.job_type:
        word = "type" if len(wanted.job_type) == 1 else "types"
        parts.append(f"of the {word} {_or(list(wanted.job_type))}")
    if wanted.queue:
        word = "queue" if len(wanted.queue) == 1 else "queues"
        parts.append(f"in the {word} {_or(list(wanted.queue))}")
    if wanted.priority is not None:
        parts.append(f"with priority {wanted.priority}")
    if wanted.worker_id is not None:
        parts.append(f"last held by {wanted.worker_id}")
    if wanted.key is not None:
        parts.append(f"with the key {wanted.key}")
    if wanted.limited_by is not None:
        parts.append(f"under the limit {wanted.limited_by}")
    if wanted.waits_for:
        parts.append(f"that wait for {_or([each.plural for each in wanted.waits_for])}")
    parts += _range("attempt", wanted.attempts_from, wanted.attempts_to)
    if wanted.created_from is not None:
        parts.append(f"created since {instant(wanted.created_from)}")
    if wanted.created_to is not None:
        parts.append(f"created before {instant(wanted.created_to)}")
    if wanted.error is not None:
        parts.append(f"with “{wanted.error}” in the error")
    if wanted.fingerprint is not None:
        parts.append(f"with an error like “{wanted.fingerprint}”")
    parts += [f"with {key} = {value} in the payload" for key, value in wanted.payload]
    return ("all " if wanted == Filter() else "") + ", ".join([" ".join(parts[:2]), *parts[2:]])


def _or(words: list[str]) -> str:
    return " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _range(word: str, low: int | None, high: int | None) -> list[str]:
    if low is None and high is None:
        return []
    if high is None:
        return [f"with {low} {word}s or more"]
    return [f"with {high} {word}s at most" if not low else f"with {low} to {high} {word}s"]
