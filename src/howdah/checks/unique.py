"""Unique: the rule that makes a unique key of a payload, and the key of one payload.

In SQL  sql/30_enqueue/take_unique_key.sql
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Collection
from datetime import timedelta
from typing import Any, Literal, get_args

import msgspec

from howdah.checks.durations import check_length
from howdah.errors import BadInput
from howdah.job import OnConflict, Unique, Until
from howdah.payload import is_text
from howdah.text.reasons import describe, shown

LONGEST = 200  # characters of a key
By = bool | str | Callable[[dict[str, Any]], object]
_HOW = (
    'unique=True for the whole payload, unique="order_id" for a parameter, or a function of the '
    "payload"
)


class UniqueRule(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs get their unique key."""

    by: Literal[True] | str | Callable[[dict[str, Any]], object]
    until: Until | None = None
    held_for: timedelta | None = None
    on_conflict: OnConflict = "existing"

    def of(self, job_type: str, data: str) -> Unique | None:
        """Return the key of an encoded payload; None if its job is not unique."""
        key = None if self.by is True else _key(self.by, job_type, msgspec.json.decode(data))
        if key is None and self.by is not True:
            return None
        return Unique(key, self.until, self.held_for, self.on_conflict)


def check_unique(
    unique: object,
    until: object = None,
    held_for: timedelta | float | None = None,
    on_conflict: object = None,
) -> UniqueRule | None:
    """Return the rule of these options; None for none."""
    if unique is None or unique is False:
        if until is not None or held_for is not None or on_conflict is not None:
            raise BadInput(
                f"unique_until, unique_for and on_conflict are for unique jobs: write {_HOW}"
            )
        return None
    if until is not None and held_for is not None:
        raise BadInput("give unique_until or unique_for, not both")
    return UniqueRule(
        by=_by(unique),
        until=None if until is None else _one_of("unique_until", until, Until),
        held_for=None if held_for is None else check_length("unique_for", held_for),
        on_conflict=_one_of("on_conflict", on_conflict or "existing", OnConflict),
    )


def _by(unique: object) -> Any:
    if callable(unique):
        if inspect.iscoroutinefunction(unique):
            raise BadInput("the function of unique must be a plain one: it is called by enqueue")
        return unique
    if unique is not True and not isinstance(unique, str):
        raise BadInput(f"unique must be {_HOW}, not {shown(unique)}")
    return unique


def check_parameter(rule: UniqueRule, parameters: Collection[str], job_type: str) -> None:
    """Refuse a rule that names a parameter which the function does not have."""
    if not isinstance(rule.by, str) or rule.by in parameters:
        return
    similar = difflib.get_close_matches(rule.by, parameters, n=3)
    hint = f" (did you mean {' or '.join(map(shown, similar))}?)" if similar else ""
    names = ", ".join(parameters) or "none"
    raise BadInput(
        f"unique of {job_type} names {shown(rule.by)}, which is not a parameter{hint}; "
        f"it has: {names}"
    )


def _one_of(what: str, given: object, choices: Any) -> Any:
    known = get_args(choices)
    if given not in known:
        listed = ", ".join(f'"{choice}"' for choice in known)
        raise BadInput(f"{what} must be one of {listed}, not {shown(given)}")
    return given


def _key(by: str | Callable[[dict[str, Any]], object], job_type: str, data: Any) -> str | None:
    """Return the key as text; None: the job is not unique."""
    if isinstance(by, str):
        what = f"{by!r}, the unique key of {job_type},"
        if by not in data:
            raise BadInput(f"the payload of {job_type} has no {by!r}, which is its unique key")
        value = data[by]
    else:
        what = f"the unique key of {job_type}"
        try:
            value = by(data)
        except Exception as error:
            raise BadInput(f"the function of {what} raised {describe(error)}") from error
    if value is None:
        return None
    if isinstance(by, str) and not isinstance(value, str):
        value = msgspec.json.encode(value, order="deterministic").decode()
    elif isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return check_unique_key(value, what)


def check_unique_key(key: object, what: str = "the unique key") -> str:
    """Return a key that the database can store."""
    if not isinstance(key, str):
        raise BadInput(
            f"{what} must be text or a whole number, or None for a job that is not unique, "
            f"not {shown(key)}"
        )
    if not 1 <= len(key) <= LONGEST:
        raise BadInput(
            f"{what} must have 1 to {LONGEST} characters, not {len(key):,}: "
            "return a hash of a longer text from a function"
        )
    if not is_text(key):
        raise BadInput(f"{what} must have no NUL character and no lone surrogate: {shown(key)}")
    return key
