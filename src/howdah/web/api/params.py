"""Params: read and check the query and the body of an API request."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

import msgspec
from msgspec import inspect
from starlette.exceptions import HTTPException
from starlette.requests import Request

from howdah.errors import BadInput
from howdah.web.request_body import FIELDS, body_of

S = TypeVar("S", bound=msgspec.Struct)
type_info: Callable[[Any], inspect.Type] = cache(inspect.type_info)

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,19})", re.ASCII)
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?$", re.DOTALL)


class QueryParams:
    """The parameters of a query, read into a struct."""

    def __init__(self, kind: type[msgspec.Struct] | None) -> None:
        self.kind = kind
        self.fields: dict[str, dict[str, Any]] = {}  # JSON schema by name
        if kind is not None:
            schema = msgspec.json.schema(kind)["$defs"]
            self.fields = schema[kind.__name__]["properties"]

    def read(self, request: Request) -> msgspec.Struct | None:
        """Read the parameters. Unknown ones are refused, so a misspelt filter never matches all."""
        values: dict[str, Any] = {}
        for name, value in _pairs(request):
            schema = self.fields.get(name)
            if schema is None:
                known = ", ".join(self.fields) or "none"
                raise BadInput(f"the parameter {name!r} is unknown; known ones are: {known}")
            if schema.get("type") == "array":
                values.setdefault(name, []).append(value)
            elif name in values:
                raise BadInput(f"the parameter {name!r} is given twice: give it once")
            else:
                whole = schema.get("type") == "integer" and _WHOLE.fullmatch(value)
                values[name] = int(value) if whole else value
        if self.kind is None:
            return None
        try:
            return msgspec.convert(values, self.kind)
        except msgspec.ValidationError as error:
            raise BadInput(_sentence(error)) from None


def _pairs(request: Request) -> list[tuple[str, str]]:
    raw: bytes = request.scope.get("query_string", b"")
    try:
        return parse_qsl(
            raw.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=FIELDS
        )
    except ValueError:
        raise BadInput(f"the query has too many fields: send at most {FIELDS:,}") from None


async def read_body(request: Request, kind: type[S], optional: bool) -> S:
    """Read a JSON body."""
    body = await body_of(request)
    if not body and optional:
        return kind()
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/json":
        raise HTTPException(
            415, "the body must be JSON: send it with Content-Type: application/json"
        )
    try:
        return msgspec.convert(_coerced(decoded(body), type_info(kind)), kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"the body is invalid: {_sentence(error)}") from None
    except RecursionError:
        raise BadInput("the body is nested too deep: use fewer levels") from None


def exact_number(text: str) -> float | Decimal:
    """Read a JSON number without losing a digit: a float if it is exact, else a Decimal."""
    near = float(text)
    return near if Decimal(repr(near)) == Decimal(text) else Decimal(text)


_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    float_hook=cast("Callable[[str], float]", exact_number)
)


def decoded(text: str | bytes) -> Any:
    """Decode JSON without losing a digit."""
    return _decoder.decode(text)


def _coerced(value: Any, kind: inspect.Type) -> Any:
    """Turn 3.0 into 3 where an integer is expected: JSON Schema treats them as equal."""
    match kind:
        case inspect.IntType() if isinstance(value, float) and value.is_integer():
            return int(value)
        case inspect.FloatType() if isinstance(value, Decimal):
            return float(value)
        case inspect.Metadata():
            return _coerced(value, kind.type)
        case inspect.UnionType():
            for member in kind.types:
                value = _coerced(value, member)
        case inspect.StructType() if isinstance(value, dict):
            fields = cast("dict[str, Any]", value)
            kinds = {field.encode_name: field.type for field in kind.fields}
            return {
                name: _coerced(item, kinds[name]) if name in kinds else item
                for name, item in fields.items()
            }
        case _:
            pass
    return value


def _sentence(error: Exception) -> str:
    """Turn an error of msgspec into a sentence: the field, then what is wrong."""
    match = _WHERE.match(str(error))
    assert match is not None
    where = match["where"]
    return f"{where}: {match['what']}" if where else match["what"]
