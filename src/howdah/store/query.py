"""Query: read with a time limit that the server keeps.

Comes after  store.py  which lends the connection
Comes before observe/

Every query is a transaction of its own with a statement_timeout: the server stops a query that
takes too long, also when the client is gone. The transaction is read-only, except for a count
that a worker writes down. A server that does not answer at all is given up shortly after.

`server_time` measures how long the server was busy with queries. The round trip is not counted:
it is known from the statement that begins the transaction, which costs the server almost nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import asyncpg

from howdah.errors import HowdahError
from howdah.store import Store

WITHIN = timedelta(seconds=2)  # the default time limit
GRACE = 1.0  # seconds beyond the limit for the answer to arrive, or for a free connection
MIN_COST = 0.0002  # seconds that every query counts at least, however fast it seems


class TookTooLong(HowdahError):
    """The database did not answer within the time limit."""


class ServerTime:
    """How long queries kept the server busy."""

    def __init__(self) -> None:
        self.seconds: float = 0.0


_server_time: ContextVar[ServerTime | None] = ContextVar("howdah_server_time", default=None)


@contextmanager
def server_time() -> Generator[ServerTime]:
    """Measure the queries of this task; an enclosing measurement counts them too."""
    inner, outer = ServerTime(), _server_time.get()
    token = _server_time.set(inner)
    try:
        yield inner
    finally:
        _server_time.reset(token)
        if outer is not None:
            outer.seconds += inner.seconds


async def fetch(
    store: Store, within: timedelta, sql: str, *args: object, writes: bool = False
) -> Sequence[asyncpg.Record]:
    """Read rows within a time limit; `writes`: the statement may also write."""
    milliseconds = max(1, int(within.total_seconds() * 1000))
    try:
        async with (
            asyncio.timeout(within.total_seconds() + GRACE),
            store.acquire() as connection,
        ):
            try:
                return await _fetch(store, connection, milliseconds, sql, *args, writes=writes)
            except asyncpg.QueryCanceledError:
                raise _too_long(within) from None
    except TimeoutError:
        raise _too_long(within) from None


async def _fetch(
    store: Store,
    connection: asyncpg.Connection[asyncpg.Record],
    milliseconds: int,
    sql: str,
    *args: object,
    writes: bool,
) -> Sequence[asyncpg.Record]:
    began_at = time.monotonic()
    kind = "" if store.pooled or writes else " read only"
    await connection.execute(f"begin{kind}; set local statement_timeout = {milliseconds}")
    sent_at = time.monotonic()
    try:
        rows = await connection.fetch(sql, *args)
    except Exception:
        if not connection.is_closed():
            await connection.execute("rollback")
        raise
    finally:
        add_cost(time.monotonic() - sent_at, round_trip=sent_at - began_at)
    await connection.execute("commit")
    return rows


def add_cost(seconds: float, round_trip: float = 0.0) -> None:
    """Count one query, whose answer took so many seconds to arrive."""
    measured = _server_time.get()
    if measured is not None:
        measured.seconds += max(seconds - round_trip, MIN_COST)


def _too_long(within: timedelta) -> TookTooLong:
    return TookTooLong(f"the database did not answer within {within.total_seconds():g} s")


async def fetchrow(store: Store, within: timedelta, sql: str, *args: object) -> asyncpg.Record:
    """Read the only row of the answer."""
    (row,) = await fetch(store, within, sql, *args)
    return row


async def fetchval(store: Store, within: timedelta, sql: str, *args: object) -> Any:
    """Read the first column of the only row."""
    return (await fetchrow(store, within, sql, *args))[0]
