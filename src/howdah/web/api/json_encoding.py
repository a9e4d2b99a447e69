"""JSON encoding: answers with exact numbers, and durations in seconds.

Payloads, results and events are sent as the text that the database stores, so no number loses a
digit. They are decoded and encoded again only if keys are redacted.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import msgspec
from starlette.responses import Response

from howdah.web.api.params import decoded
from howdah.web.redact import MARK, redacted

_encoder = msgspec.json.Encoder(decimal_format="number")
_KEPT = (timedelta, Decimal, msgspec.Raw)


def encode_response(value: Any, status: int = 200) -> Response:
    """Return a value as a JSON response."""
    plain = _in_seconds(msgspec.to_builtins(value, builtin_types=_KEPT))
    return Response(_encoder.encode(plain), status, media_type="application/json")


def redacted_json(text: str | None, keys: frozenset[str]) -> msgspec.Raw:
    """Return JSON of a job without the values of redacted keys."""
    if text is None:
        return msgspec.Raw(b"null")
    if not keys:
        return msgspec.Raw(text.encode())
    try:
        return msgspec.Raw(_encoder.encode(redacted(decoded(text), keys)))
    except (msgspec.DecodeError, RecursionError):  # its keys cannot be searched
        return msgspec.Raw(_encoder.encode(MARK))


def _in_seconds(value: Any) -> Any:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, dict):
        return {
            key: _in_seconds(item) if isinstance(item, dict | list | timedelta) else item
            for key, item in cast("dict[str, Any]", value).items()
        }
    if isinstance(value, list):
        return [_in_seconds(item) for item in cast("list[Any]", value)]
    return value
