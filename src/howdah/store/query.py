"""Look: read from the database without ever hurting it.

Comes after  store/  which lends the connection

Every look is a transaction with a statement_timeout of its own, kept by the server: a question
that turns out to be expensive is stopped there, also when the asker is gone. It is read-only, but
for the count that a worker writes down. A server that does not answer at all is given up a moment
later.

Whoever looks again and again can have the looks counted (`spending`): how long the server was busy
with them, as far as it can be told from here. What a way there and back takes is known from the
statement that begins the transaction, which costs the server nothing.
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

WITHIN = timedelta(seconds=2)  # unless the caller says otherwise
PATIENCE = 1.0  # seconds beyond that for an answer to come, or a connection


LEAST = 0.0002  # seconds that a look keeps the server busy, however quick it seems


class TookTooLong(HowdahError):
    """The answer would have cost more time than it was given."""


class Spent:
    """How long looks kept the server busy."""

    def __init__(self) -> None:
        self.seconds: float = 0.0


_spent: ContextVar[Spent | None] = ContextVar("howdah_looks_spent", default=None)


@contextmanager
def spending() -> Generator[Spent]:
    """Count the looks of this task, for whoever counts around it as well."""
    spent = Spent()
    around = _spent.get()
    token = _spent.set(spent)
    try:
        yield spent
    finally:
        _spent.reset(token)
        if around is not None:
            around.seconds += spent.seconds


async def fetch(
    store: Store, within: timedelta, sql: str, *args: object, writes: bool = False
) -> Sequence[asyncpg.Record]:
    """Read rows, within so much time; `writes`: the statement may write what it found."""
    milliseconds = max(1, int(within.total_seconds() * 1000))
    try:
        async with (
            asyncio.timeout(within.total_seconds() + PATIENCE),
            store.acquire() as connection,
        ):
            try:
                return await _look(store, connection, milliseconds, sql, *args, writes=writes)
            except asyncpg.QueryCanceledError:
                raise _too_long(within) from None
    except TimeoutError:
        raise _too_long(within) from None


async def _look(
    store: Store,
    connection: asyncpg.Connection[asyncpg.Record],
    milliseconds: int,
    sql: str,
    *args: object,
    writes: bool,
) -> Sequence[asyncpg.Record]:
    began = time.monotonic()
    kind = "" if store.pooled or writes else " read only"
    await connection.execute(f"begin{kind}; set local statement_timeout = {milliseconds}")
    asked = time.monotonic()
    try:
        rows = await connection.fetch(sql, *args)
    except Exception:
        if not connection.is_closed():
            await connection.execute("rollback")
        raise
    finally:
        _count(time.monotonic() - asked, asked - began)
    await connection.execute("commit")
    return rows


def _count(answered: float, there_and_back: float) -> None:
    spent = _spent.get()
    if spent is not None:
        spent.seconds += max(answered - there_and_back, LEAST)


def _too_long(within: timedelta) -> TookTooLong:
    return TookTooLong(f"the database did not answer within {within.total_seconds():g} s")


async def fetchrow(store: Store, within: timedelta, sql: str, *args: object) -> asyncpg.Record:
    """Read the one row that there is."""
    (row,) = await fetch(store, within, sql, *args)
    return row


async def fetchval(store: Store, within: timedelta, sql: str, *args: object) -> Any:
    return (await fetchrow(store, within, sql, *args))[0]
