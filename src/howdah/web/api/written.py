"""Written: answers as JSON, with exact numbers, and lengths of time in seconds.

Payloads, results and events go out as the text that the database keeps, so no number loses a digit
on its way; only where keys are redacted they are read, and written again.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any, cast

import msgspec
from starlette.responses import Response

from howdah.web.api.asked import decoded
from howdah.web.redact import MARK, redacted

_encoder = msgspec.json.Encoder(decimal_format="number")
_KEPT = (timedelta, Decimal, msgspec.Raw)


def json_answer(value: Any, status: int = 200) -> Response:
    """Answer with JSON."""
    plain = _in_seconds(msgspec.to_builtins(value, builtin_types=_KEPT))
    return Response(_encoder.encode(plain), status, media_type="application/json")


def shown(text: str | None, keys: frozenset[str]) -> msgspec.Raw:
    """Show JSON of a job, without what stands under redacted keys."""
    if text is None:
        return msgspec.Raw(b"null")
    if not keys:
        return msgspec.Raw(text.encode())
    try:
        return msgspec.Raw(_encoder.encode(redacted(decoded(text), keys)))
    except (msgspec.DecodeError, RecursionError):  # it cannot be searched
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
