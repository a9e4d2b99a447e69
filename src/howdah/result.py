"""Result: what a function returned, made again as its annotation says.

Comes after   the job's end, with its result as plain JSON
Comes before  `handle.result()`

A result is stored as JSON. Where the function is known, it is decoded into the return annotation:
dataclasses, models, datetimes and whatever else a payload may have. Where the annotation says
nothing, or names what cannot be made from JSON, the result stays plain JSON.
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
_NOTHING_SAID = (Any, None, type(None), object, typing.NoReturn, typing.Never)
_AWAITED = (collections.abc.Awaitable, collections.abc.Coroutine)


class ResultType:
    """What one function returns."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            hints = typing.get_type_hints(function, include_extras=True)
        except Exception:  # a name that is not there at run time
            hints = {}
        kind = _without_outcomes(_awaited(hints.get("return", Any)))
        self._name = kind.__name__ if isinstance(kind, type) else str(kind)
        self._decoders = _decoders(kind)

    def decode(self, result: object, job: str) -> Any:
        """Make the value again; raises ResultDoesNotFit, naming the job."""
        if not self._decoders:
            return result
        encoded = msgspec.json.encode(result)
        refusals: list[Exception] = []
        for decoder in self._decoders:
            try:
                value = decoder.decode(encoded)
                if len(self._decoders) == 1 or _encodes_as(value, result):
                    return value
            except Exception as error:  # a type's own checks may raise anything
                if isinstance(error.__cause__, payload.NotFromJson):
                    return result
                refusals.append(error)
        raise ResultDoesNotFit(
            f"{job} returned what does not fit {self._name}: {_said(refusals)}. "
            "The error's `result`, and `handle.job()`, have it as plain JSON",
            result,
        )


def _said(refusals: list[Exception]) -> str:
    if not refusals:
        return "no member of the union gives the same JSON"
    error = refusals[0]
    return reason_of(error) if isinstance(error, ValueError) else describe(error)


def _awaited(kind: Any) -> Any:
    """Return what awaiting gives, of a plain function that returns something to await."""
    if typing.get_origin(kind) in _AWAITED:
        return typing.get_args(kind)[-1]
    return kind


def _members(kind: Any) -> tuple[Any, ...]:
    union = typing.get_origin(kind) in (typing.Union, types.UnionType)
    return typing.get_args(kind) if union else (kind,)


def _without_outcomes(kind: Any) -> Any:
    """Leave out what decides about an attempt (`-> Receipt | Retry`): it is never a result."""
    members = _members(kind)
    kept = tuple(each for each in members if each not in _OUTCOMES)
    if len(kept) == len(members):
        return kind
    return typing.Union[kept] if kept else None  # noqa: UP007 - made at run time


def _decoders(kind: Any) -> list[msgspec.json.Decoder[Any]]:
    """Make the decoders: one, or one for each member of a union that one alone cannot tell apart.

    None where the annotation says nothing, or where it cannot be made from JSON.
    """
    if kind in _NOTHING_SAID:
        return []
    try:
        return [payload.decoder_for(kind)]
    except Exception:  # TypeError of msgspec, or whatever a type raises when it is looked at
        members = _members(kind)
    if len(members) == 1:
        return []
    try:
        return [payload.decoder_for(each) for each in members]
    except Exception:
        return []


def _encodes_as(value: object, result: object) -> bool:
    return cast("object", payload.decode(payload.encode(value, "the result"))) == result
