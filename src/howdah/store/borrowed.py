"""Borrowed: enqueue through the caller's own connection, in the caller's own transaction.

The job is written by one plain SQL call, so it is committed or rolled back with everything
else the caller does, and workers see it only after the commit. One thin adapter per driver,
told apart by the module the connection comes from; none of the drivers is imported here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any
from uuid import UUID

import msgspec

from howdah.errors import BadInput
from howdah.job import Draft

_COLUMNS = ("job_type", "data", "priority", "run_at", "max_attempts", "id", "delay")
_CASTS = ("text", "jsonb", "int", "timestamptz", "int", "uuid", "interval")


def _call(mark: Callable[[int, str], str]) -> str:
    """Write the call of howdah.enqueue with a driver's own parameter marks."""
    marks = (
        f"cast({mark(n, name)} as {kind})"
        for n, (name, kind) in enumerate(zip(_COLUMNS, _CASTS, strict=True), start=1)
    )
    return f"select howdah.enqueue({', '.join(marks)})"


_NUMBERED = _call(lambda n, _: f"${n}")
_PERCENT = _call(lambda _, __: "%s")
_NAMED = _call(lambda _, name: f":{name}")


def _values(draft: Draft) -> dict[str, Any]:
    return {name: getattr(draft, name) for name in _COLUMNS}


def is_async(conn: object) -> bool:
    """Whether enqueueing through this connection has to be awaited."""
    return _kind(conn) in ("asyncpg", "psycopg async", "sqlalchemy async")


def _kind(conn: object) -> str:
    for cls in type(conn).__mro__:
        module, name = cls.__module__.partition(".")[0], cls.__name__
        if module == "asyncpg":
            return "asyncpg"
        if module == "psycopg":
            return "psycopg async" if name.startswith("Async") else "psycopg"
        if module == "psycopg2":
            return "psycopg"
        if module == "sqlalchemy" and ("Connection" in name or "ession" in name):
            return "sqlalchemy async" if name.lower().startswith("async") else "sqlalchemy"
        if module == "django":
            return "django"
    raise BadInput(
        f"conn={type(conn).__module__}.{type(conn).__qualname__} is not a connection howdah knows: "
        "asyncpg, psycopg 3 (sync or async), psycopg2, SQLAlchemy (connection or session, sync or "
        "async) or Django"
    )


def enqueue_now(conn: Any, draft: Draft) -> None:
    """Enqueue through a connection that is not async."""
    values = _values(draft)
    match _kind(conn):
        case "psycopg" | "django":
            values["id"] = str(values["id"])
            with conn.cursor() as cursor:
                cursor.execute(_PERCENT, tuple(values.values()))
        case "sqlalchemy":
            conn.execute(_sqlalchemy_text(), values)
        case kind:
            raise BadInput(f"this is an async connection ({kind}): await the enqueue of a Queue")


async def enqueue(conn: Any, draft: Draft) -> None:
    """Enqueue through any connection howdah knows."""
    values = _values(draft)
    match _kind(conn):
        case "asyncpg":
            await conn.execute(_NUMBERED, *values.values())
        case "psycopg async":
            async with conn.cursor() as cursor:
                await cursor.execute(_PERCENT, tuple(values.values()))
        case "sqlalchemy async":
            result = conn.execute(_sqlalchemy_text(), values)
            if inspect.isawaitable(result):
                await result
        case _:
            enqueue_now(conn, draft)


def _sqlalchemy_text() -> Any:
    from sqlalchemy import text

    return text(_NAMED)


def as_json(drafts: list[Draft]) -> str:
    """Write drafts as the argument of howdah.enqueue_many."""
    return msgspec.json.encode(
        [
            {**_values(draft), "data": msgspec.Raw(draft.data.encode()), "id": _text(draft.id)}
            for draft in drafts
        ]
    ).decode()


def _text(id: UUID) -> str:
    return str(id)
