"""Signature: the parameters of a handler as data, and a fingerprint of them.

A worker registers both. The parameters are for people and for programs that check a payload without
the function. The fingerprint shows whether two versions of the code read the same payloads.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from howdah.safe_logging import log_named

_log = log_named("howdah.types")

_MAX_BYTES = 60_000  # of all parameters as JSON; the table allows 64 KB
_LONGEST_TYPE = 200


class Parameter(msgspec.Struct, frozen=True):
    """One argument of a payload."""

    name: str
    type: str
    required: bool


def describe_parameters(parameters: Mapping[str, inspect.Parameter]) -> list[Parameter]:
    """Describe parameters; without their types if these are too long to store."""
    described = [
        Parameter(name, _type_name(parameter.annotation), parameter.default is parameter.empty)
        for name, parameter in parameters.items()
    ]
    if len(msgspec.json.encode(described)) > _MAX_BYTES:
        described = [Parameter(parameter.name, "", parameter.required) for parameter in described]
    return described if len(msgspec.json.encode(described)) <= _MAX_BYTES else []


def fingerprint(struct: type[msgspec.Struct], parameters: list[Parameter]) -> str:
    """Return a short hash of the parameters and all their types, nested types included."""
    text = msgspec.json.encode(parameters)
    try:
        schema = msgspec.json.schema(struct, schema_hook=_schema_of)
        text += msgspec.json.encode(schema, enc_hook=_repr, order="deterministic")
    except Exception:  # a type without a schema: only its name counts
        _log.debug("types.unread shape=%s", struct.__name__)
    return hashlib.sha256(text).hexdigest()[:16]


def _schema_of(kind: type) -> dict[str, Any]:
    """Describe a type that msgspec does not know: a pydantic model by its schema."""
    schema = getattr(kind, "model_json_schema", None)
    if schema is not None:
        return cast("dict[str, Any]", schema())
    return {"title": _type_name(kind)}


def _repr(value: object) -> str:
    return _without_addresses(repr(value))


def _type_name(annotation: object) -> str:
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        name = annotation.__qualname__
    else:
        try:
            name = _without_addresses(str(annotation).replace("typing.", ""))
        except Exception:  # str() of a user's class may raise anything
            name = type(annotation).__qualname__
    return "".join(c if c.isprintable() else "?" for c in name)[:_LONGEST_TYPE]


def _without_addresses(text: str) -> str:
    """Leave out memory addresses, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
