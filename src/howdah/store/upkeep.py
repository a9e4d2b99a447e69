"""Upkeep: the calls that promote, recover, requeue and prune.

In SQL  sql/70_upkeep/
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import NamedTuple
from uuid import UUID

from howdah.states import State
from howdah.store.pool import close_connection
from howdah.store.store import Store, fetch_ids

VACUUM_TIMEOUT = 600.0  # seconds
PREPARE_TIMEOUT = 600.0  # seconds to move many misplaced rows to the partition of their day


async def requeue(store: Store, ids: Sequence[UUID], attempts: int) -> set[UUID]:
    return await fetch_ids(store, "select howdah.requeue($1, $2)", list(ids), attempts)


class Recovered(NamedTuple):
    """A job that was taken from a silent worker."""

    id: UUID
    status: State
    worker_id: str


async def recover_stale_jobs(store: Store, timeout: timedelta) -> list[Recovered]:
    rows = await store.fetch(
        "select id, status, worker_id from howdah.recover_stale_jobs($1)", timeout
    )
    return [Recovered(row[0], State(row[1]), row[2]) for row in rows]


class UpkeepResult(NamedTuple):
    """What one round of upkeep did."""

    expired: int
    promoted: int
    recovered: int
    failed: int
    silent_workers: list[str]
    next_due_in: timedelta | None  # of a job or a schedule
    next_look: timedelta | None
    schedules_due: bool


async def upkeep(store: Store, timeout: timedelta, worker_id: str) -> UpkeepResult | None:
    """Do one round of upkeep; None if another worker does it at the moment."""
    rows = await store.fetch(
        "select expired, promoted, recovered, failed, silent_workers, next_due_in, next_look, "
        "schedules_due "
        "from howdah.async_commit(), howdah.upkeep($1, $2)",
        timeout,
        worker_id,
    )
    if not rows:
        return None
    expired, promoted, recovered, failed, silent_workers, *rest = rows[0]
    return UpkeepResult(expired, promoted, recovered, failed, silent_workers or [], *rest)


class Promoted(NamedTuple):
    """What one call of promote_due did."""

    promoted: int
    next_due_in: timedelta | None
    as_of: str | None  # for the next call; None: another session admits jobs at the moment
    next_look: timedelta | None  # until there is something to admit; None: when it is requested
    schedules_due: bool


async def promote_due(store: Store, worker_id: str, since: str | None) -> Promoted | None:
    """Promote due jobs, and admit jobs that wait for a slot: see sql/35_admit/admit.sql.

    None if another worker does it at the moment.
    """
    rows = await store.fetch(
        "select promoted, next_due_in, as_of, next_look, schedules_due "
        "from howdah.async_commit(), howdah.promote_due($1, $2)",
        worker_id,
        since,
    )
    return Promoted(*rows[0]) if rows else None


async def promote(store: Store, limit: int = 1000) -> int:
    return await store.fetchval("select count(*) from howdah.promote($1)", limit)


class LiveTable(NamedTuple):
    """What a VACUUM of jobs_live has to do."""

    dead_rows: int  # an estimate
    bytes: int
    oldest_snapshot: int | None  # a transaction id; None if we may not see the sessions of others


async def live_table(store: Store) -> LiveTable | None:
    """Return how many rows of jobs_live are dead, and its size; None if we may not vacuum it."""
    rows = await store.fetch(
        "select pg_stat_get_dead_tuples(c.oid), pg_relation_size(c.oid), "
        "case when pg_has_role('pg_read_all_stats', 'usage') then "
        "pg_snapshot_xmax(pg_current_snapshot())::text::bigint - ("
        "select coalesce(max(age(a.backend_xmin)), 0) from pg_stat_activity as a) end "
        "from pg_class as c "
        "where c.oid = 'howdah.jobs_live'::regclass and ("
        "pg_has_role(c.relowner, 'usage') or "
        "case when current_setting('server_version_num')::int >= 170000 "
        "then has_table_privilege(c.oid, 'maintain') else false end)"
    )
    return LiveTable(*rows[0]) if rows else None


async def vacuum(store: Store, *, truncate: bool) -> None:
    """Vacuum jobs_live, unless it is being vacuumed; `truncate`: return its empty end to the disk.

    To truncate, VACUUM waits up to 5 s for a moment in which nobody uses the table.
    """
    statement = f"vacuum (skip_locked, truncate {truncate}) howdah.jobs_live"
    connection = await store.connect()  # not of the pool: it may have no other, and this takes long
    try:
        await connection.execute(statement, timeout=VACUUM_TIMEOUT)
    except Exception as error:
        store.raise_translated(error)
    finally:
        await close_connection(connection)


async def prune(store: Store, keep: timedelta | None = None) -> list[str]:
    """Drop old jobs and create the partitions of coming days; returns the dropped partitions."""
    dropped = await store.fetch("select howdah.prune($1)", keep)
    async with store.acquire() as connection:
        # in steps, each with its own timeout: a step that is cancelled has to start again
        while await connection.fetch("select howdah.prepare_days()", timeout=PREPARE_TIMEOUT):
            pass
    return [row[0] for row in dropped]
