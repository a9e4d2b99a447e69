"""Caller connection: enqueue through the caller's own connection, in the caller's transaction.

The jobs are written by a plain SQL call. They are committed or rolled back with everything else
that the caller does, and workers see them only after the commit. There is one small adapter per
driver. The class of the connection tells the driver, which is imported only when it is used. All
drafts are sent as one text parameter, so no codec or type map of the caller can change them. Errors
of the database are raised by the driver, unchanged. completion.py uses the adapters, too.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Iterable
from enum import Enum
from typing import Any, TypeVar
from uuid import UUID

import msgspec

from howdah.errors import BadInput, PayloadTooLarge
from howdah.job import Draft
from howdah.store.enqueue import Added, as_json, check_draft, check_size, holders_of, is_full
from howdah.store.store import Store

T = TypeVar("T")

_ENQUEUE = "select count(*) from howdah.enqueue_many(cast(cast({} as text) as jsonb))"
_ENQUEUE_UNIQUE = (
    "select coalesce(json_agg(id order by nth), '[]')::text "
    "from howdah.enqueue_many(cast(cast({} as text) as jsonb)) with ordinality as job (id, nth)"
)
_LIMIT = "select howdah.option(cast({} as text))"


class Driver(Enum):
    """The library that a connection belongs to."""

    PSYCOPG = "psycopg"
    PSYCOPG_ASYNC = "psycopg, async"
    PSYCOPG2 = "psycopg2"
    ASYNCPG = "asyncpg"
    SQLALCHEMY = "SQLAlchemy"
    SQLALCHEMY_ASYNC = "SQLAlchemy, async"
    DJANGO = "Django"

    @property
    def is_async(self) -> bool:
        """Whether using the connection has to be awaited."""
        return self in (Driver.PSYCOPG_ASYNC, Driver.ASYNCPG, Driver.SQLALCHEMY_ASYNC)


# Top package and name of a class → its driver. A subclass counts as its base class.
_DRIVERS = {
    ("psycopg", "Connection"): Driver.PSYCOPG,
    ("psycopg", "AsyncConnection"): Driver.PSYCOPG_ASYNC,
    ("psycopg2", "connection"): Driver.PSYCOPG2,
    ("asyncpg", "Connection"): Driver.ASYNCPG,
    ("asyncpg", "PoolConnectionProxy"): Driver.ASYNCPG,
    ("sqlalchemy", "Connection"): Driver.SQLALCHEMY,
    ("sqlalchemy", "Session"): Driver.SQLALCHEMY,
    ("sqlalchemy", "scoped_session"): Driver.SQLALCHEMY,
    ("sqlalchemy", "AsyncConnection"): Driver.SQLALCHEMY_ASYNC,
    ("sqlalchemy", "AsyncSession"): Driver.SQLALCHEMY_ASYNC,
    ("sqlalchemy", "async_scoped_session"): Driver.SQLALCHEMY_ASYNC,
    ("django", "BaseDatabaseWrapper"): Driver.DJANGO,
    ("django", "ConnectionProxy"): Driver.DJANGO,
}


def driver_of(conn: object) -> Driver:
    """Return the driver of a connection; raises BadInput for anything else."""
    for cls in type(conn).__mro__:
        driver = _DRIVERS.get((cls.__module__.partition(".")[0], cls.__name__))
        if driver is Driver.DJANGO and (vendor := getattr(conn, "vendor", "")) != "postgresql":
            raise BadInput(
                f"conn is a Django connection to {vendor or 'an unknown database'}: "
                "give a connection to PostgreSQL"
            )
        if driver is not None:
            return driver
    raise BadInput(
        f"conn={type(conn).__module__}.{type(conn).__qualname__} is not a connection howdah knows. "
        "Give a connection of psycopg 3 (sync or async), psycopg2 or asyncpg, a connection or "
        "session of SQLAlchemy (sync or async), or django.db.connection. "
        "A pool, engine or cursor does not work: it has no transaction of its own"
    )


def refuse_async(conn: object) -> None:
    """Refuse an async connection."""
    driver = driver_of(conn)
    if driver.is_async:
        raise BadInput(
            f"conn is an async connection ({driver.value}), which sync code cannot use: "
            "give a sync connection, or use the async Queue"
        )


def run_inline(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, in the caller's own thread."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    work.close()
    raise AssertionError("this coroutine suspends, so it needs a loop")


async def enqueue(store: Store, conn: Any, draft: Draft) -> UUID:
    """Enqueue one job. Never suspends if the connection is a sync one.

    Returns its id, or that of the job that has its unique key.
    """
    holders = await _send(store, conn, driver_of(conn), [draft])
    return holders.get(draft.id, draft.id)


async def enqueue_many(
    store: Store, conn: Any, drafts: Iterable[Draft] | AsyncIterable[Draft]
) -> Added:
    """Enqueue a stream of jobs, one statement per batch."""
    driver = driver_of(conn)
    count = 0
    holders: dict[UUID, UUID] = {}
    async for batch in _batches(drafts):
        holders |= await _send(store, conn, driver, batch)
        count += len(batch)
    return Added(count - len(holders), holders)


async def _batches(
    drafts: Iterable[Draft] | AsyncIterable[Draft],
) -> AsyncGenerator[list[Draft], None]:
    batch: list[Draft] = []
    size = 0
    async for draft in _each(drafts):
        batch.append(draft)
        size += len(draft.data)
        if is_full(batch, size):
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


async def _each(
    drafts: Iterable[Draft] | AsyncIterable[Draft],
) -> AsyncGenerator[Draft, None]:
    if isinstance(drafts, AsyncIterable):
        async for draft in drafts:
            yield check_draft(draft)
    else:
        for draft in drafts:
            yield check_draft(draft)


async def _send(store: Store, conn: Any, driver: Driver, drafts: list[Draft]) -> dict[UUID, UUID]:
    """Enqueue a batch; returns the jobs that have the unique keys of some, by draft."""
    try:
        _check_sizes(drafts, store.payload_limit)
    except PayloadTooLarge:  # the limit may have been raised since it was read
        limit = int(await fetch_value(conn, driver, _LIMIT, "max_payload_bytes"))
        _check_sizes(drafts, limit)
        store.payload_limit = limit
    if all(draft.unique is None for draft in drafts):
        await fetch_value(conn, driver, _ENQUEUE, as_json(drafts))
        return {}
    ids = await fetch_value(conn, driver, _ENQUEUE_UNIQUE, as_json(drafts))
    return holders_of(drafts, msgspec.json.decode(ids, type=list[UUID]))


def _check_sizes(drafts: list[Draft], limit: int) -> None:
    for draft in drafts:
        check_size(draft, limit)


async def fetch_value(conn: Any, driver: Driver, sql: str, text: str) -> Any:
    """Run a statement with one text parameter, and return its first value."""
    match driver:
        case Driver.ASYNCPG:
            return await conn.fetchval(sql.format("$1"), text)
        case Driver.PSYCOPG_ASYNC:
            from psycopg import AsyncCursor
            from psycopg.rows import scalar_row

            async with AsyncCursor(conn, row_factory=scalar_row) as cursor:
                await cursor.execute(sql.format("%s").encode(), [text])
                return await cursor.fetchone()
        case Driver.PSYCOPG:
            from psycopg import Cursor
            from psycopg.rows import scalar_row

            with Cursor(conn, row_factory=scalar_row) as cursor:
                cursor.execute(sql.format("%s").encode(), [text])
                return cursor.fetchone()
        case Driver.PSYCOPG2:
            from psycopg2.extensions import cursor as Psycopg2Cursor

            with conn.cursor(cursor_factory=Psycopg2Cursor) as cursor:
                cursor.execute(sql.format("%s"), [text])
                return cursor.fetchone()[0]
        case Driver.DJANGO:
            with conn.cursor() as cursor:
                cursor.execute(sql.format("%s"), [text])
                return cursor.fetchone()[0]
        case Driver.SQLALCHEMY:
            return conn.execute(_sqlalchemy_text(sql), {"value": text}).scalar()
        case Driver.SQLALCHEMY_ASYNC:
            return (await conn.execute(_sqlalchemy_text(sql), {"value": text})).scalar()


def _sqlalchemy_text(sql: str) -> Any:
    from sqlalchemy import text

    return text(sql.format(":value"))
