"""Redact: replace the values of configured keys before anybody sees them.

Keys match at any depth, ignoring case. JSON that is nested too deep to search is replaced whole.
"""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from howdah.errors import BadInput
from howdah.observe import KeyCounts, Summary

MARK = "•••"
HIDDEN_KEYS = "the keys of jobs are redacted here: filter by another field"


def redacted(value: Any, keys: frozenset[str]) -> Any:
    """Return a JSON value without the values of these keys, which are casefolded."""
    if not keys:
        return value
    try:
        if isinstance(value, str):
            return MARK if _is_undecoded(value) else value
        return _searched(value, keys)
    except RecursionError:
        return MARK


def hidden_key(key: str | None, keys: frozenset[str]) -> str | None:
    """Return a key of a job; hidden where keys are redacted: it may be made of their values."""
    return MARK if key is not None and keys else key


def hidden_limit(limited_by: str | None, keys: frozenset[str]) -> str | None:
    """Return the name of a limit; of a limit per key without the key where keys are redacted."""
    if limited_by is None or not keys:
        return limited_by
    name, per_key, _ = limited_by.partition(":")
    return f"{name}:{MARK}" if per_key else name


def without_keys(job: Summary, keys: frozenset[str]) -> Summary:
    """Return a job of a list; its keys are hidden where keys are redacted."""
    if not keys:
        return job
    return msgspec.structs.replace(
        job, key=hidden_key(job.key, keys), limited_by=hidden_limit(job.limited_by, keys)
    )


def shown_keys(counted: KeyCounts, keys: frozenset[str]) -> KeyCounts:
    """Return the counts by key; the keys are hidden where keys are redacted."""
    if not keys:
        return counted
    hidden = [msgspec.structs.replace(of_key, key=MARK) for of_key in counted.keys]
    return msgspec.structs.replace(counted, keys=hidden)


def refuse_hidden_keys(key: str | None, limited_by: str | None, keys: frozenset[str]) -> None:
    """Refuse a search for a key of a job where keys are redacted."""
    if keys and (key is not None or ":" in (limited_by or "")):
        raise BadInput(HIDDEN_KEYS)


def _searched(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: MARK if str(key).casefold() in keys else _searched(item, keys)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        return [_searched(item, keys) for item in cast("list[Any]", value)]
    return value


def _is_undecoded(text: str) -> bool:
    """Return whether this is JSON that stayed text because decoding failed: see payload.py."""
    if text[:1] not in ("{", "["):
        return False
    try:
        msgspec.json.decode(text)
    except msgspec.ValidationError:  # well formed, but a number is too large
        return True
    except msgspec.DecodeError:
        return False
    return False


def asks_for_hidden(key: str, value: str, keys: frozenset[str]) -> bool:
    """Return whether a search for this would reveal a redacted value."""
    if not keys:
        return False
    names = [key]

    def collect(pairs: list[tuple[str, Any]]) -> None:
        names.extend(name for name, _ in pairs)

    try:
        json.loads(value, object_pairs_hook=collect, parse_int=str)
    except ValueError:
        pass  # not JSON: plain text has no keys
    except RecursionError:
        return True  # its keys are unknown
    return any(name.casefold() in keys for name in names)
