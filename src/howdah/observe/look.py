"""Look: read from the database without ever hurting it.

Comes after  store/  which lends the connection

Every look is a read-only transaction with a statement_timeout of its own, kept by the server:
a question that turns out to be expensive is stopped there, also when the asker is gone. A server
that does not answer at all is given up a moment later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg

from howdah.errors import HowdahError
from howdah.store import Store

WITHIN = timedelta(seconds=2)  # unless the caller says otherwise
PATIENCE = 1.0  # seconds beyond that for an answer to come, or a connection


class TookTooLong(HowdahError):
    """The answer would have cost more time than it was given."""


async def fetch(
    store: Store, within: timedelta, sql: str, *args: object
) -> Sequence[asyncpg.Record]:
    """Read rows, within so much time."""
    milliseconds = max(1, int(within.total_seconds() * 1000))
    try:
        async with (
            asyncio.timeout(within.total_seconds() + PATIENCE),
            store.acquire() as connection,
        ):
            try:
                async with connection.transaction(readonly=not store.pooled):
                    await connection.execute(f"set local statement_timeout = {milliseconds}")
                    return await connection.fetch(sql, *args)
            except asyncpg.QueryCanceledError:
                raise _too_long(within) from None
    except TimeoutError:
        raise _too_long(within) from None


def _too_long(within: timedelta) -> TookTooLong:
    return TookTooLong(f"the database did not answer within {within.total_seconds():g} s")


async def fetchrow(store: Store, within: timedelta, sql: str, *args: object) -> asyncpg.Record:
    """Read the one row that there is."""
    (row,) = await fetch(store, within, sql, *args)
    return row


async def fetchval(store: Store, within: timedelta, sql: str, *args: object) -> Any:
    return (await fetchrow(store, within, sql, *args))[0]
