"""Redact: values under named keys are replaced before anybody sees them.

Comes before  pages/, api/  which show payloads, results and events

Keys are compared in any case, at any depth. What is nested too deep to be searched is replaced as a
whole: better nothing than a secret.
"""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

MARK = "•••"


def redacted(value: Any, keys: frozenset[str]) -> Any:
    """Return the same JSON value without what stands under these keys, given casefolded."""
    if not keys:
        return value
    try:
        if isinstance(value, str):
            return MARK if _is_unread(value) else value
        return _searched(value, keys)
    except RecursionError:
        return MARK


def _searched(value: Any, keys: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: MARK if str(key).casefold() in keys else _searched(item, keys)
            for key, item in cast("dict[Any, Any]", value).items()
        }
    if isinstance(value, list | tuple):
        return [_searched(item, keys) for item in cast("list[Any]", value)]
    return value


def _is_unread(text: str) -> bool:
    """Whether this is JSON that was left as text because it could not be read: see payload.py."""
    if text[:1] not in ("{", "["):
        return False
    try:
        msgspec.json.decode(text)
    except msgspec.ValidationError:  # well formed, but with a number beyond all bounds
        return True
    except msgspec.DecodeError:
        return False
    return False


def asks_for_hidden(key: str, value: str, keys: frozenset[str]) -> bool:
    """Whether a search for this would tell of what is hidden: who may not see it may not guess."""
    if not keys:
        return False
    found = [key]

    def note(pairs: list[tuple[str, Any]]) -> None:
        found.extend(name for name, _ in pairs)

    try:
        json.loads(value, object_pairs_hook=note, parse_int=str)
    except ValueError:
        pass  # plain text has no keys
    except RecursionError:
        return True  # nobody can tell what it has
    return any(name.casefold() in keys for name in found)
