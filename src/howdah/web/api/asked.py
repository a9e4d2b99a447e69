"""Asked: what a request asks for, read and checked; what does not fit is told in a sentence."""

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
from howdah.web.body import FIELDS, body_of

S = TypeVar("S", bound=msgspec.Struct)
type_info: Callable[[Any], inspect.Type] = cache(inspect.type_info)

_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,19})", re.ASCII)
_WHERE = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<where>.*)`)?$", re.DOTALL)


class Query:
    """The fields of a query, by the struct that they become."""

    def __init__(self, kind: type[msgspec.Struct] | None) -> None:
        self.kind = kind
        self.fields: dict[str, dict[str, Any]] = {}  # the schema of each
        if kind is not None:
            schema = msgspec.json.schema(kind)["$defs"]
            self.fields = schema[kind.__name__]["properties"]

    def read(self, request: Request) -> msgspec.Struct | None:
        """Read them; unknown ones are refused, so that a misspelt filter never matches all."""
        said: dict[str, Any] = {}
        for name, value in _pairs(request):
            schema = self.fields.get(name)
            if schema is None:
                known = ", ".join(self.fields) or "it takes none"
                raise BadInput(f"there is no parameter {name!r} here: {known}")
            if schema.get("type") == "array":
                said.setdefault(name, []).append(value)
            elif name in said:
                raise BadInput(f"the parameter {name!r} is given twice")
            else:
                whole = schema.get("type") == "integer" and _WHOLE.fullmatch(value)
                said[name] = int(value) if whole else value
        if self.kind is None:
            return None
        try:
            return msgspec.convert(said, self.kind)
        except msgspec.ValidationError as error:
            raise BadInput(_sentence(error)) from None


def _pairs(request: Request) -> list[tuple[str, str]]:
    raw: bytes = request.scope.get("query_string", b"")
    try:
        return parse_qsl(
            raw.decode("ascii", "replace"), keep_blank_values=True, max_num_fields=FIELDS
        )
    except ValueError:
        raise BadInput(f"a query may have {FIELDS:,} fields") from None


async def read_body(request: Request, kind: type[S], optional: bool) -> S:
    """Read a body of JSON."""
    body = await body_of(request)
    if not body and optional:
        return kind()
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if said != "application/json":
        raise HTTPException(415, "the body is JSON: send it with Content-Type: application/json")
    try:
        return msgspec.convert(_as_meant(decoded(body), type_info(kind)), kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise BadInput(f"the body does not fit: {_sentence(error)}") from None
    except RecursionError:
        raise BadInput("the body is nested too deep") from None


def exact_number(said: str) -> float | Decimal:
    """Read a number of JSON without losing a digit: a float where it can hold it."""
    near = float(said)
    return near if Decimal(repr(near)) == Decimal(said) else Decimal(said)


_decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(
    float_hook=cast("Callable[[str], float]", exact_number)
)


def decoded(text: str | bytes) -> Any:
    """Read JSON without losing a digit."""
    return _decoder.decode(text)


def _as_meant(value: Any, kind: inspect.Type) -> Any:
    """Read 3.0 as the integer that it is by JSON Schema, where an integer is asked for."""
    match kind:
        case inspect.IntType() if isinstance(value, float) and value.is_integer():
            return int(value)
        case inspect.FloatType() if isinstance(value, Decimal):
            return float(value)
        case inspect.Metadata():
            return _as_meant(value, kind.type)
        case inspect.UnionType():
            for one in kind.types:
                value = _as_meant(value, one)
        case inspect.StructType() if isinstance(value, dict):
            said = cast("dict[str, Any]", value)
            kinds = {field.encode_name: field.type for field in kind.fields}
            return {
                name: _as_meant(item, kinds[name]) if name in kinds else item
                for name, item in said.items()
            }
        case _:
            pass
    return value


def _sentence(error: Exception) -> str:
    """Word what msgspec says for whoever sent it."""
    found = _WHERE.match(str(error))
    assert found is not None
    where = found["where"]
    return f"{where}: {found['what']}" if where else found["what"]
