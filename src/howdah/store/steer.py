"""Steer: what a person does to a queue beside cancelling and requeueing jobs.

In SQL  sql/75_steer/, one file per verb

A verb that takes ids answers with those it moved; what is missing was not in a state for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from howdah.store import Store, query


class Paused(msgspec.Struct, frozen=True):
    """A job type that nobody may claim."""

    job_type: str
    paused_at: datetime
    paused_by: str
    reason: str | None


async def pause(
    store: Store, job_type: str, reason: str | None = None, by: str | None = None
) -> bool:
    """Let nobody claim jobs of this type; returns whether it was not paused before."""
    return await store.fetchval("select howdah.pause($1, $2, $3)", job_type, reason, by)


async def resume(store: Store, job_type: str) -> bool:
    """Let jobs of a paused type be claimed again; returns whether it was paused."""
    return await store.fetchval("select howdah.resume($1)", job_type)


async def paused(store: Store, *, within: timedelta = query.WITHIN) -> dict[str, Paused]:
    """Return the paused types by name."""
    rows = await query.fetch(
        store,
        within,
        "select job_type, paused_at, paused_by, reason from howdah.paused_types order by 1",
    )
    return {row[0]: Paused(*row) for row in rows}


async def reprioritise(store: Store, ids: Sequence[UUID], priority: int) -> set[UUID]:
    """Give waiting jobs another priority."""
    return await _ids(store, "select howdah.reprioritise($1, $2)", list(ids), priority)


async def run_now(store: Store, ids: Sequence[UUID]) -> set[UUID]:
    """Let jobs that wait for their time, or for a retry, join the line at once."""
    return await _ids(store, "select howdah.run_now($1)", list(ids))


async def delete(store: Store, ids: Sequence[UUID]) -> set[UUID]:
    """Forget finished jobs and their events."""
    return await _ids(store, "select howdah.delete($1)", list(ids))


async def clone(store: Store, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Hand over a new job like each of these; returns the clone's id by the id."""
    rows = await store.fetch("select id, clone_id from howdah.clone($1)", list(ids))
    return {row[0]: row[1] for row in rows}


async def drain(store: Store, worker_id: str) -> bool:
    """Ask a worker to stop; returns whether it is alive to hear it."""
    return await store.fetchval("select howdah.drain($1)", worker_id)


async def _ids(store: Store, sql: str, *args: object) -> set[UUID]:
    return {row[0] for row in await store.fetch(sql, *args)}
