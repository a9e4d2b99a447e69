"""Steer: what a person does to a queue, other than cancel and requeue.

In SQL  sql/75_steer/, one file per verb

A verb that takes ids returns the ids that it moved. An id that is missing belongs to a job whose
state does not allow the verb.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from howdah.store.store import Store


async def pause(
    store: Store, job_type: str, reason: str | None = None, by: str | None = None
) -> bool:
    """Let no worker claim jobs of this type; returns False if it was paused already."""
    return await store.fetchval("select howdah.pause($1, $2, $3)", job_type, reason, by)


async def resume(store: Store, job_type: str) -> bool:
    """Let workers claim jobs of a paused type again; returns False if it was not paused."""
    return await store.fetchval("select howdah.resume($1)", job_type)


async def reprioritise(store: Store, ids: Sequence[UUID], priority: int) -> set[UUID]:
    """Give waiting jobs another priority."""
    return await _ids(store, "select howdah.reprioritise($1, $2)", list(ids), priority)


async def run_now(store: Store, ids: Sequence[UUID]) -> set[UUID]:
    """Let scheduled jobs, and jobs that wait for a retry, join the line now."""
    return await _ids(store, "select howdah.run_now($1)", list(ids))


async def delete(store: Store, ids: Sequence[UUID]) -> set[UUID]:
    """Delete finished jobs and their events."""
    return await _ids(store, "select howdah.delete($1)", list(ids))


async def clone(store: Store, ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Enqueue a copy of each job; returns the copy's id by the job's id."""
    rows = await store.fetch("select id, clone_id from howdah.clone($1)", list(ids))
    return {row[0]: row[1] for row in rows}


async def drain(store: Store, worker_id: str) -> bool:
    """Ask a worker to stop; returns False if it is not alive."""
    return await store.fetchval("select howdah.drain($1)", worker_id)


async def _ids(store: Store, sql: str, *args: object) -> set[UUID]:
    return {row[0] for row in await store.fetch(sql, *args)}
