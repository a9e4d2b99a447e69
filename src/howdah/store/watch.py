"""Watch: read jobs by their ids, and ask to be told of their changes.

In SQL       sql/80_observe/watch.sql, jobs_by_id.sql
Comes before client/follow.py
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from howdah.errors import NotAllowed
from howdah.job import Job
from howdah.store.rows import JOB_COLUMNS, job_from
from howdah.store.store import Store

_BY_IDS = f"select {JOB_COLUMNS} from howdah.jobs_by_id($1)"  # noqa: S608
_WATCH = f"select {JOB_COLUMNS} from howdah.async_commit(), howdah.watch($1)"  # noqa: S608


async def jobs_by_id(store: Store, ids: Sequence[UUID]) -> list[Job]:
    """Read jobs as they are now; an id without a job is left out."""
    return [job_from(row) for row in await store.fetch(_BY_IDS, list(ids))]


async def watch(store: Store, ids: Sequence[UUID]) -> list[Job]:
    """Read jobs and mark them as watched; a role that may only read does not mark them."""
    try:
        return [job_from(row) for row in await store.fetch(_WATCH, list(ids))]
    except NotAllowed:
        return await jobs_by_id(store, ids)
