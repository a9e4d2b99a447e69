"""Request body: read bodies and forms with a limit."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

LIMIT = 1_000_000  # bytes: enough for ten thousand ids
FIELDS = 20_000


async def body_of(request: Request) -> bytes:
    """Read a body; refuse one that is too large before its end."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LIMIT:
            raise HTTPException(413, f"the body is too large: send at most {LIMIT:,} bytes")
    return bytes(body)


async def form_of(request: Request) -> list[tuple[str, str]]:
    """Read the fields of a form in order."""
    return fields(await body_of(request))


def fields(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS
        )
    except ValueError:
        raise HTTPException(413, f"the form has too many fields: send at most {FIELDS:,}") from None
