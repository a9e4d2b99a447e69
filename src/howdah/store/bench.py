"""Bench: the statements of `howdah bench`: how much WAL was written, and removing its jobs."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.store.store import Store


async def wal_position(store: Store) -> int:
    """Return how many bytes of WAL the server has written since it was made."""
    return int(
        await store.fetchval("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
    )


async def delete_jobs_of_types(store: Store, job_types: Sequence[str]) -> None:
    """Delete every job of these types, whatever its state."""
    await store.fetch("delete from howdah.jobs where job_type = any ($1)", list(job_types))
