"""Result: decode the result of a job into the return annotation of its function.

Comes after   the end of the job, with its result as plain JSON
Comes before  `handle.result()`

A result is stored as JSON. If the function is known, the result is decoded into its return
annotation: dataclasses, models, datetimes and all other types that a payload may have. If there is
no annotation, or JSON cannot be decoded into it, the result stays plain JSON.
"""

from __future__ import annotations

import collections.abc
import types
import typing
from collections.abc import Callable
from typing import Any, cast

import msgspec

from howdah import payload
from howdah.errors import ResultDoesNotFit
from howdah.outcomes import Cancel, Fail, Retry, Snooze
from howdah.text.reasons import describe, reason_of

_OUTCOMES = (Cancel, Fail, Retry, Snooze)
_NO_TYPE = (Any, None, type(None), object, typing.NoReturn, typing.Never)
_AWAITABLES = (collections.abc.Awaitable, collections.abc.Coroutine)


class ResultType:
    """The return type of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except Exception:  # for example a name that exists only for type checking
            hints = {}
        kind = _without_outcomes(_awaited(hints.get("return", Any)))
        self._name = kind.__name__ if isinstance(kind, type) else str(kind)
        self._decoders = _decoders(kind)

    def decode(self, result: object, of: str, also: str = ", and `handle.job()`,") -> Any:
        """Decode a result; raises ResultDoesNotFit. `of` names its job, `also` who else has it."""
        if not self._decoders:
            return result
        encoded = msgspec.json.encode(result)
        errors: list[Exception] = []
        for decoder in self._decoders:
            try:
                value = decoder.decode(encoded)
                if len(self._decoders) == 1 or _encodes_as(value, result):
                    return value
            except Exception as error:  # the checks of a user's type may raise anything
                if isinstance(error.__cause__, payload.NotFromJson):
                    return result
                errors.append(error)
        raise ResultDoesNotFit(
            f"the result of {of} does not fit {self._name}: {_first_reason(errors)}. "
            f"The error's `result`{also} {'have' if also else 'has'} it as plain JSON",
            result,
        )


def _first_reason(errors: list[Exception]) -> str:
    if not errors:
        return "no member of the union gives the same JSON"
    error = errors[0]
    return reason_of(error) if isinstance(error, ValueError) else describe(error)


def _awaited(kind: Any) -> Any:
    """Return the type inside an Awaitable or Coroutine."""
    if typing.get_origin(kind) in _AWAITABLES:
        return typing.get_args(kind)[-1]
    return kind


def _members(kind: Any) -> tuple[Any, ...]:
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _without_outcomes(kind: Any) -> Any:
    """Leave outcomes out of a union (`-> Receipt | Retry`): they are never a result."""
    members = _members(kind)
    results = tuple(member for member in members if member not in _OUTCOMES)
    if len(results) == len(members):
        return kind
    return typing.Union[results] if results else None  # noqa: UP007 - made at run time


def _decoders(kind: Any) -> list[msgspec.json.Decoder[Any]]:
    """Make one decoder, or one per member of a union that a single decoder cannot distinguish.

    The list is empty if there is no annotation, or if JSON cannot be decoded into it.
    """
    if kind in _NO_TYPE:
        return []
    try:
        return [payload.decoder_for(kind)]
    except Exception:  # a TypeError of msgspec, or any error of a user's type
        members = _members(kind)
    if len(members) == 1:
        return []
    try:
        return [payload.decoder_for(member) for member in members]
    except Exception:
        return []


def _encodes_as(value: object, result: object) -> bool:
    return cast("object", payload.decode(payload.encode(value, "the result"))) == result
