"""Signature: the parameters of a handler as data, and a fingerprint that changes with them.

A worker registers both. The parameters are for people and for those who check a payload without
the function; the fingerprint tells whether two versions of the code read the same payloads.
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

_MOST_BYTES = 60_000  # of all parameters as JSON; the table allows 64 KB
_LONGEST_TYPE = 200


class Parameter(msgspec.Struct, frozen=True):
    """One argument that a payload has or may have."""

    name: str
    type: str
    required: bool


def parameters_of(parameters: Mapping[str, inspect.Parameter]) -> list[Parameter]:
    """Describe parameters; without their types where they would be too long to keep."""
    described = [
        Parameter(name, _type_name(one.annotation), one.default is one.empty)
        for name, one in parameters.items()
    ]
    if len(msgspec.json.encode(described)) > _MOST_BYTES:
        described = [Parameter(one.name, "", one.required) for one in described]
    return described if len(msgspec.json.encode(described)) <= _MOST_BYTES else []


def fingerprint(shape: type[msgspec.Struct], parameters: list[Parameter]) -> str:
    """Return a short hash of all that decides which payloads fit, nested types included."""
    text = msgspec.json.encode(parameters)
    try:
        schema = msgspec.json.schema(shape, schema_hook=_foreign)
        text += msgspec.json.encode(schema, enc_hook=_words, order="deterministic")
    except Exception:  # a type that has no schema: its name must do
        _log.debug("types.unread shape=%s", shape.__name__)
    return hashlib.sha256(text).hexdigest()[:16]


def _foreign(kind: type) -> dict[str, Any]:
    """Describe a type that msgspec does not know: a pydantic model by its schema."""
    schema = getattr(kind, "model_json_schema", None)
    if schema is not None:
        return cast("dict[str, Any]", schema())
    return {"title": _type_name(kind)}


def _words(value: object) -> str:
    return _without_addresses(repr(value))


def _type_name(annotation: object) -> str:
    if isinstance(annotation, type) and not hasattr(annotation, "__args__"):
        name = annotation.__qualname__
    else:
        try:
            name = _without_addresses(str(annotation).replace("typing.", ""))
        except Exception:  # whatever a class of the user's makes of str()
            name = type(annotation).__qualname__
    return "".join(c if c.isprintable() else "?" for c in name)[:_LONGEST_TYPE]


def _without_addresses(text: str) -> str:
    """Leave out where objects lie in memory, which differs from process to process."""
    return re.sub(r" at 0x[0-9a-fA-F]+", "", text)
