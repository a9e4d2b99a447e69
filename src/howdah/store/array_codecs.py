"""Array codecs: encode the arrays that every batch sends, faster than asyncpg does.

asyncpg asks of each element whether it is an array itself, which takes longer than to encode it.
These codecs write PostgreSQL's binary format of an array with one dimension: a header, then each
element with its length before it. A length of time may be given in seconds, because a timedelta
takes longer to make than to send.

asyncpg's own `set_type_codec` queries the catalog on every connection. It then makes the same call
as `register_array_codecs`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

if TYPE_CHECKING:
    import asyncpg

_UUID_ARRAY, _UUID = 2951, 2950  # oids of types, which never change
_INT4_ARRAY, _INT4 = 1007, 23
_INTERVAL_ARRAY, _INTERVAL = 1187, 1186

_HEADER = struct.Struct(">5i").pack  # dimensions, whether there are nulls, type, elements, 1
_NULL = b"\xff\xff\xff\xff"
_UUID_LENGTH = b"\0\0\0\x10"
_INT4_ELEMENT = struct.Struct(">ii").pack
_INTERVAL_ELEMENT = struct.Struct(">iqii").pack


def _array(element_type: int, elements: list[bytes]) -> bytes:
    return _HEADER(1, 1, element_type, len(elements), 1) + b"".join(elements)


def _encode_uuids(ids: Sequence[UUID | None]) -> bytes:
    return _array(_UUID, [_NULL if id is None else _UUID_LENGTH + id.bytes for id in ids])


def _encode_ints(numbers: Sequence[int | None]) -> bytes:
    return _array(_INT4, [_NULL if n is None else _INT4_ELEMENT(4, n) for n in numbers])


def _encode_intervals(lengths: Sequence[timedelta | float | None]) -> bytes:
    return _array(_INTERVAL, [_interval(length) for length in lengths])


def _interval(length: timedelta | float | None) -> bytes:
    if length is None:
        return _NULL
    if isinstance(length, timedelta):
        microseconds = length.seconds * 1_000_000 + length.microseconds
        return _INTERVAL_ELEMENT(16, microseconds, length.days, 0)
    return _INTERVAL_ELEMENT(16, int(length * 1_000_000), 0, 0)


def _decoder(decode: Callable[[bytes], Any]) -> Callable[[bytes], list[Any]]:
    """Make the decoder of an array; `decode` reads one element."""

    def decode_array(array: bytes) -> list[Any]:
        values: list[Any] = []
        at = 20  # after the header; an empty array has a shorter one
        while at < len(array):
            length = int.from_bytes(array[at : at + 4], signed=True)
            end = at + 4 + max(length, 0)
            values.append(None if length < 0 else decode(array[at + 4 : end]))
            at = end
        return values

    return decode_array


def _decode_int(element: bytes) -> int:
    return int.from_bytes(element, signed=True)


def _decode_interval(element: bytes) -> timedelta:
    microseconds, days, _ = struct.unpack(">qii", element)
    return timedelta(days=days, microseconds=microseconds)


_CODECS = (
    (_UUID_ARRAY, "_uuid", _encode_uuids, _decoder(lambda element: UUID(bytes=element))),
    (_INT4_ARRAY, "_int4", _encode_ints, _decoder(_decode_int)),
    (_INTERVAL_ARRAY, "_interval", _encode_intervals, _decoder(_decode_interval)),
)


def register_array_codecs(connection: asyncpg.Connection[asyncpg.Record]) -> None:
    """Encode these arrays on a new connection."""
    settings: Any = connection.get_settings()
    for oid, name, encode, decode in _CODECS:
        settings.add_python_codec(oid, name, "pg_catalog", [], "scalar", encode, decode, "binary")
