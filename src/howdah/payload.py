"""Payload: encode Python values as JSON that jsonb can store, and decode them.

Good input is encoded in one pass in C. Values that JSON or jsonb cannot store are searched only if
the encoded text may hold one: `null` may have been a NaN, an escaped zero may be a NUL, many
brackets may be deep nesting. Nothing is ever pickled.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import math
import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, cast

import msgspec

from howdah.errors import BadInput, PayloadTooLarge
from howdah.text.reasons import describe, name_of, reason_of, shown

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
_SCALARS = (str, int, float, bool)
_FLATTEN = "use fewer levels, or store the inner part as text"


def _plain(value: object) -> object:
    """Convert pydantic models, which msgspec does not know."""
    dump = cast("Callable[..., object] | None", getattr(value, "model_dump", None))
    if dump is not None:
        return dump(mode="json")
    raise NotImplementedError


class NotFromJson(ValueError):
    """A type that cannot be decoded from JSON."""


def _model(kind: type, value: object) -> object:
    """Make a pydantic model; msgspec calls this only for types that it does not know."""
    validate = cast("Callable[[object], object] | None", getattr(kind, "model_validate", None))
    if validate is not None:
        return validate(value)
    raise NotFromJson(
        f"{kind.__name__} cannot be decoded from JSON; annotate it as Any, or as a type that can"
    )


_encoder = msgspec.json.Encoder(enc_hook=_plain)


def encode(value: object, what: str, *, limit: int | None = None) -> str:
    """Encode one value as JSON; `what` names it in error messages."""
    try:
        raw = _encoder.encode(value)
    except RecursionError:
        raise BadInput(f"{what} is nested too deep or contains itself: {_FLATTEN}") from None
    except UnicodeEncodeError:
        raise BadInput(
            f"{what} contains half a surrogate pair, which is not text: remove it"
        ) from None
    except (TypeError, NotImplementedError, ValueError, OverflowError) as error:
        raise BadInput(f"{what} is not JSON: {_bad_part(value) or reason_of(error)}") from None
    except Exception as error:  # raised by a model of the user
        raise BadInput(f"{what} cannot be encoded as JSON: {describe(error)}") from error
    if limit is not None and len(raw) > limit:
        raise _too_large(what, len(raw), limit)
    if limit is not None and type(value) not in _SCALARS:
        read(raw, what)
    try:
        text = raw.decode()  # Python searches faster in str than in bytes
    except UnicodeDecodeError:
        raise BadInput(
            f"{what} contains bytes that are not UTF-8: encode its text as UTF-8"
        ) from None
    if "null" in text or "\\u0000" in text or text.count("{") + text.count("[") > MAX_DEPTH:
        _refuse_unstorable(value, what, depth=1)
    return text


def _bad_part(value: object) -> str | None:
    """Say which part of a value is not JSON, and what to write instead."""
    try:
        path, part = _find_bad_part(value)
    except BaseException:  # objects of the user may raise anything
        return None
    if isinstance(part, _SCALARS):
        return None
    kind = name_of(type(part))
    return f"{path or 'it'} is of type {kind}: {_instead(part, path)}"


def _find_bad_part(value: object) -> tuple[str, object]:
    """Find the innermost part that cannot be encoded; returns its path and the part."""
    path = ""
    for _ in range(MAX_DEPTH):
        for name, part in _parts_of(value):
            try:
                _encoder.encode(part)
            except Exception:
                dotted = f".{name}" if path and not name.startswith("[") else name
                path, value = path + dotted, part
                break
        else:
            break
    return path, value


def _parts_of(value: Any) -> Iterator[tuple[str, object]]:
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            yield (key if isinstance(key, str) else f"[{shown(key)}]"), item
    elif isinstance(value, list | tuple):
        for n, item in enumerate(cast("list[object]", value)):
            yield f"[{n}]", item
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield name, getattr(value, name)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for field in dataclasses.fields(value):
            yield field.name, getattr(value, field.name)


def _instead(part: object, path: str) -> str:
    if isinstance(part, os.PathLike):
        return f"give str({path or '…'}), and take str"
    if inspect.isawaitable(part):
        if inspect.iscoroutine(part):
            part.close()  # else Python warns that it was never awaited
        return "await it first"
    if isinstance(part, Iterator | AsyncIterator | range):
        return f"give list({path or '…'})"
    if isinstance(part, Mapping):
        return "its keys must be text"
    if isinstance(part, set | frozenset):
        return "its members must be text, numbers, lists or dicts"
    if isinstance(part, type) or callable(part):
        return "give its name, or what it returns"
    if hasattr(part, "pk"):
        return f"give its key ({path or '…'}.pk), and load it in the job"
    return "give its id, or a dict of its fields"


def reencode(text: str, what: str, *, limit: int) -> str:
    """Check JSON that another process has encoded, by decoding and encoding it."""
    return encode(read(text, what), what, limit=limit)


def read(text: str | bytes, what: str) -> Any:
    """Decode JSON that comes from elsewhere; raises BadInput if it is not JSON."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise BadInput(f"{what} is nested too deep: {_FLATTEN}") from None
    except (msgspec.MsgspecError, UnicodeError) as error:
        raise BadInput(f"{what} is not JSON: {reason_of(error)}") from None


def check_size(data: str, what: str, limit: int) -> None:
    """Refuse an encoded value above the limit; the size is that of the database."""
    if (size := _stored_size(data)) > limit:
        raise _too_large(what, size, limit)


def _stored_size(data: str) -> int:
    """Count the bytes of a document as jsonb prints it: with a space after each , and :."""
    spaced = json.dumps(msgspec.json.decode(data), ensure_ascii=False)
    return len(spaced.encode())


def _too_large(what: str, size: int, limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(
        f"{what} has {size:,} bytes; the limit is {limit:,}. "
        "Store the data elsewhere (a table, a file, a bucket) and enqueue a reference to it."
    )


def _refuse_unstorable(value: object, what: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise BadInput(f"{what} is nested more than {MAX_DEPTH} levels deep: {_FLATTEN}")
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadInput(f"{what} contains {value}, which JSON cannot hold: give None instead")
    elif isinstance(value, str):
        if "\0" in value:
            raise BadInput(
                f"{what} contains a NUL character, which PostgreSQL cannot hold: remove it"
            )
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[object, object]", value).items():
            _refuse_unstorable(key, what, depth)
            _refuse_unstorable(item, what, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in cast("list[object]", value):
            _refuse_unstorable(item, what, depth + 1)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            _refuse_unstorable(getattr(value, name), what, depth + 1)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            _refuse_unstorable(getattr(value, field.name), what, depth + 1)
    elif isinstance(value, msgspec.Raw):
        _refuse_unstorable(read(bytes(value), what), what, depth)
    elif hasattr(value, "model_dump"):
        _refuse_unstorable(_plain(value), what, depth)


def is_text(text: str) -> bool:
    """Whether PostgreSQL can store this text: no NUL, no half of a surrogate pair."""
    try:
        return b"\0" not in str.encode(text)  # not text.encode: a subclass may override it
    except UnicodeEncodeError:
        return False


def decode(raw: str | None) -> Any:
    """Decode JSON from the database; a document that Python cannot decode is returned as text.

    Such a document is nested too deep, or has a number that is too long or too large for Python.
    """
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (RecursionError, msgspec.DecodeError):
        return raw


def decoder_for(kind: Any) -> msgspec.json.Decoder[Any]:
    """Make a decoder for a type; refuses types that cannot be decoded from JSON."""
    return msgspec.json.Decoder(kind, dec_hook=_model)
