"""Body: what a form sends, read with a limit."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

LIMIT = 1_000_000  # bytes: ten thousand ids fit
FIELDS = 20_000


async def body_of(request: Request) -> bytes:
    """Read a whole body; too large a one is refused before it is read to its end."""
    read = bytearray()
    async for part in request.stream():
        read += part
        if len(read) > LIMIT:
            raise HTTPException(413, f"a request may have {LIMIT:,} bytes")
    return bytes(read)


async def form_of(request: Request) -> list[tuple[str, str]]:
    """Read the fields of a form in their order."""
    return fields(await body_of(request))


def fields(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=FIELDS
        )
    except ValueError:
        raise HTTPException(413, f"a form may have {FIELDS:,} fields") from None
