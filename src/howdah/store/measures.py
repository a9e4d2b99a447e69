"""Measures: the calls that write what workers measured.

In SQL  sql/80_observe/record_measures.sql, compact_measures.sql, sample_waiting.sql,
        sample_limits.sql

None of them waits for the disk: after a crash the last measures are lost, and no job.
"""

from __future__ import annotations

from datetime import timedelta

from howdah.store import query
from howdah.store.store import Store


async def record(store: Store, worker_id: str, rows: str) -> bool:
    """Write measures, as JSON; returns whether the worker was asked to stop."""
    return bool(
        await store.fetchval(
            "select howdah.record_measures($1, $2) from howdah.async_commit()", worker_id, rows
        )
    )


async def compact(store: Store) -> None:
    """Merge old measures into fewer rows."""
    await store.fetchval("select howdah.compact_measures() from howdah.async_commit()")


async def sample_waiting(store: Store, within: timedelta) -> None:
    """Write how many jobs wait, unless it was written within the last minute."""
    sql = "select howdah.sample_waiting() from howdah.async_commit()"
    await query.fetch(store, within, sql, writes=True)


async def sample_limits(store: Store, within: timedelta) -> None:
    """Write how the named limits are used, unless it was just written."""
    sql = "select howdah.sample_limits() from howdah.async_commit()"
    await query.fetch(store, within, sql, writes=True)
