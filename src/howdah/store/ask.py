"""Ask: what the database knows about jobs, read and never changed.

Lists go by keyset: a page begins behind the last job of the page before, so that the
thousandth page costs what the first does. Counts come from `finished_counts`, never from the
history itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from howdah import payload
from howdah.errors import NotAllowed
from howdah.events import Emitted
from howdah.job import Job
from howdah.states import State
from howdah.store.rows import JOB_COLUMNS, job_from
from howdah.store.store import Store

_BY_IDS = f"select {JOB_COLUMNS} from howdah.jobs_by_id($1)"  # noqa: S608
_WATCH = f"select {JOB_COLUMNS} from howdah.async_commit(), howdah.watch($1)"  # noqa: S608
_LIVE = tuple(state for state in State if not state.finished)


async def jobs_by_id(store: Store, ids: Sequence[UUID]) -> list[Job]:
    return [job_from(row) for row in await store.fetch(_BY_IDS, list(ids))]


async def watch(store: Store, ids: Sequence[UUID]) -> list[Job]:
    """Read jobs and ask to be told of their changes; who may only read, only reads."""
    try:
        return [job_from(row) for row in await store.fetch(_WATCH, list(ids))]
    except NotAllowed:
        return await jobs_by_id(store, ids)


async def jobs(
    store: Store,
    *,
    statuses: Sequence[State] = (),
    job_types: Sequence[str] = (),
    worker_id: str | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[Job]:
    """List jobs, newest first; `before` is the last id of the page before."""
    where: list[str] = []
    args: list[object] = []

    def add(condition: str, value: object) -> None:
        args.append(value)
        where.append(condition.format(f"${len(args)}"))

    if statuses:
        add("status = any ({}::text[])", [str(status) for status in statuses])
        if all(status in _LIVE for status in statuses):
            where.append("status in ('pending', 'claimed', 'running')")
        elif State.COMPLETED not in statuses and all(status.finished for status in statuses):
            where.append("status <> 'completed'")
            where.append("status in ('completed', 'failed', 'cancelled')")
    if job_types:
        add("job_type = any ({}::text[])", list(job_types))
    if worker_id is not None:
        add("worker_id = {}", worker_id)
    if before is not None:
        add("id < {}", before)
    args.append(limit)
    sql = f"select {JOB_COLUMNS} from howdah.jobs"  # noqa: S608 - conditions are the ones above
    sql += f" where {' and '.join(where)}" if where else ""
    sql += f" order by id desc limit ${len(args)}"
    return [job_from(row) for row in await store.fetch(sql, *args)]


async def counts(store: Store) -> dict[str, dict[State, int]]:
    """Count jobs by type and state."""
    rows = await store.fetch("select job_type, status, jobs from howdah.queue_depth order by 1, 2")
    found: dict[str, dict[State, int]] = {}
    for job_type, status, jobs in rows:
        found.setdefault(job_type, {})[State(status)] = jobs
    return found


async def events(store: Store, id: UUID, after: int, limit: int = 1000) -> list[Emitted]:
    """Return a job's events above a number, in order."""
    rows = await store.fetch(
        "select number, kind, data, attempt, created_at from howdah.job_events "
        "where job_id = $1 and number > $2 order by number limit $3",
        id,
        after,
        limit,
    )
    return [
        Emitted(n, kind, payload.decode(data), attempt, at) for n, kind, data, attempt, at in rows
    ]


class WorkerHealth(NamedTuple):
    """How a worker is, by its beats."""

    id: str
    started_at: datetime
    beat_at: datetime
    silent_for: timedelta
    alive: bool
    holds: int
    info: dict[str, Any]


async def workers(store: Store) -> list[WorkerHealth]:
    rows = await store.fetch(
        "select id, started_at, beat_at, silent_for, alive, holds, info "
        "from howdah.worker_health order by alive desc, started_at"
    )
    return [
        WorkerHealth(id, started, beat, silent, alive, holds, payload.decode(info))
        for id, started, beat, silent, alive, holds, info in rows
    ]
