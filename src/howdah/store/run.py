"""Run: the calls about running jobs: start, progress, events, and the beat of a worker.

In SQL  sql/50_run/

None of them waits for the disk (howdah.async_commit()): if a crash loses one, it is sent again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from howdah.job import Claim
from howdah.store.store import Store, fetch_ids

if TYPE_CHECKING:
    from howdah.store.store import Connection


async def start(store: Store, worker_id: str, running: Sequence[tuple[Claim, float]]) -> set[UUID]:
    """Mark attempts as running; each comes with the monotonic time its handler began."""
    now = time.monotonic()
    return await fetch_ids(
        store,
        "select s.* from howdah.async_commit(), howdah.start($1, $2, $3, $4) as s",
        worker_id,
        [claim.id for claim, _ in running],
        [claim.attempt for claim, _ in running],
        [now - began for _, began in running],
    )


async def progress(
    store: Store, worker_id: str, reports: Sequence[tuple[Claim, int | None, str | None]]
) -> set[UUID]:
    return await fetch_ids(
        store,
        "select p.* from howdah.async_commit(), howdah.progress($1, $2, $3, $4, $5) as p",
        worker_id,
        [claim.id for claim, _, _ in reports],
        [claim.attempt for claim, _, _ in reports],
        [percent for _, percent, _ in reports],
        [stage for _, _, stage in reports],
    )


async def emit(store: Store, worker_id: str, events: Sequence[tuple[Claim, str, str]]) -> set[UUID]:
    return await fetch_ids(
        store,
        "select e.* from howdah.async_commit(), howdah.emit($1, $2, $3, $4, $5) as e",
        worker_id,
        [claim.id for claim, _, _ in events],
        [claim.attempt for claim, _, _ in events],
        [kind for _, kind, _ in events],
        [data for _, _, data in events],
    )


async def beat(
    connection: Connection,
    worker_id: str,
    held: Sequence[tuple[UUID, int]],
    silent_after: timedelta,
    info: str | None,
) -> set[UUID]:
    """Report that the worker lives; returns the held attempts that it has lost."""
    rows = await connection.fetch(
        "select b.* from howdah.async_commit(), howdah.beat($1, $2, $3, $4, $5) as b",
        worker_id,
        [id for id, _ in held],
        [attempt for _, attempt in held],
        silent_after,
        info,
    )
    return {row[0] for row in rows}


async def beat_for_another(
    connection: Connection, worker_id: str, silent_after: timedelta, held_up: float
) -> None:
    """Beat for a worker that is held up, and record for how long and the types that it holds."""
    await connection.execute(
        "select from howdah.async_commit(), howdah.workers as w, "
        "howdah.beat(w.id, p_silent_after => $2, p_info => w.info || jsonb_build_object('held_up', "
        "jsonb_build_object('seconds', $3::float8, 'now', true, 'types', array(select distinct "
        "j.job_type from howdah.jobs_live as j where j.worker_id = w.id order by 1 limit 5)))) "
        "where w.id = $1",
        worker_id,
        silent_after,
        held_up,
    )


async def deregister(store: Store, worker_id: str) -> None:
    """Remove a worker that has ended."""
    await store.fetchval("select howdah.deregister($1)", worker_id)
