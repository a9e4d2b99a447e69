"""Look: read from the database without ever hurting it.

Comes after  store/  which lends the connection

Every look is a read-only transaction with a statement_timeout of its own, kept by the server:
a question that turns out to be expensive is stopped there, also when the asker is gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import asyncpg

from howdah.errors import HowdahError
from howdah.store import Store

WITHIN = timedelta(seconds=2)  # unless the caller says otherwise


class TookTooLong(HowdahError):
    """The answer would have cost more time than it was given."""


async def fetch(
    store: Store, within: timedelta, sql: str, *args: object
) -> Sequence[asyncpg.Record]:
    """Read rows, within so much time."""
    milliseconds = max(1, int(within.total_seconds() * 1000))
    async with store.acquire() as connection:
        try:
            async with connection.transaction(readonly=not store.pooled):
                await connection.execute(f"set local statement_timeout = {milliseconds}")
                return await connection.fetch(sql, *args)
        except asyncpg.QueryCanceledError:
            raise TookTooLong(
                f"the database did not answer within {within.total_seconds():g} s"
            ) from None


async def fetchrow(store: Store, within: timedelta, sql: str, *args: object) -> asyncpg.Record:
    """Read the one row that there is."""
    (row,) = await fetch(store, within, sql, *args)
    return row


async def fetchval(store: Store, within: timedelta, sql: str, *args: object) -> Any:
    return (await fetchrow(store, within, sql, *args))[0]
