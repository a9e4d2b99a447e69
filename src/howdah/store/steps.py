"""Steps: the calls that store the steps of jobs, and send signals.

In SQL  sql/52_steps/

Each call takes the steps of many jobs with their leases. A step that is missing in the answer had a
stale lease.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from uuid import UUID

import msgspec

from howdah.job import Claim
from howdah.outcomes import Ending, Suspend
from howdah.steps import AwaitSignal, SaveStep, StepKey, StoredStep
from howdah.store.store import Store, fetch_ids


async def load(store: Store, ids: Sequence[UUID]) -> dict[UUID, list[StoredStep]]:
    """Return the stored steps of jobs; without those of jobs that have none."""
    rows = await store.fetch(
        "select job_id, kind, name, number, function, result, ended, timed_out, "
        "date_part('epoch', ends_in) from howdah.load_steps($1)",
        list(ids),
    )
    steps: defaultdict[UUID, list[StoredStep]] = defaultdict(list)
    for job_id, kind, name, number, *rest in rows:
        steps[job_id].append(StoredStep(StepKey(kind, name, number), *rest))
    return steps


async def save(store: Store, worker_id: str, steps: Sequence[tuple[Claim, SaveStep]]) -> set[int]:
    """Store steps; returns the positions of those whose lease was valid."""
    rows = await store.fetch(
        "select howdah.save_steps($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        worker_id,
        [claim.id for claim, _ in steps],
        [claim.attempt for claim, _ in steps],
        [step.key.kind for _, step in steps],
        [step.key.name for _, step in steps],
        [step.key.number for _, step in steps],
        [step.function for _, step in steps],
        [step.result for _, step in steps],
        [step.began_ago for _, step in steps],
        [step.lasts for _, step in steps],
    )
    return {row[0] - 1 for row in rows}


async def save_checkpoints(
    store: Store, worker_id: str, checkpoints: Sequence[tuple[Claim, str]]
) -> set[UUID]:
    return await fetch_ids(
        store,
        "select c.* from howdah.async_commit(), howdah.save_checkpoints($1, $2, $3, $4) as c",
        worker_id,
        [claim.id for claim, _ in checkpoints],
        [claim.attempt for claim, _ in checkpoints],
        [data for _, data in checkpoints],
    )


async def await_signals(
    store: Store, worker_id: str, waits: Sequence[tuple[Claim, AwaitSignal]]
) -> dict[int, StoredStep]:
    """Take signals or begin to wait; returns each wait by its position."""
    rows = await store.fetch(
        "select nth, ended, timed_out, data, date_part('epoch', ends_in) "
        "from howdah.await_signals($1, $2, $3, $4, $5, $6)",
        worker_id,
        [claim.id for claim, _ in waits],
        [claim.attempt for claim, _ in waits],
        [wait.key.name for _, wait in waits],
        [wait.key.number for _, wait in waits],
        [wait.timeout for _, wait in waits],
    )
    steps: dict[int, StoredStep] = {}
    for row in rows:
        n: int = row[0] - 1
        ended, timed_out, data, ends_in = row[1:]
        steps[n] = StoredStep(waits[n][1].key, None, data, ended, timed_out, ends_in)
    return steps


async def suspend(store: Store, worker_id: str, endings: Sequence[Ending]) -> set[UUID]:
    """Put jobs back until they can go on; the outcome of each is Suspend."""
    blocked = [e.outcome.blocked for e in endings if isinstance(e.outcome, Suspend)]
    return await fetch_ids(
        store,
        "select howdah.suspend($1, $2, $3, $4)",
        worker_id,
        [ending.claim.id for ending in endings],
        [ending.claim.attempt for ending in endings],
        [msgspec.json.encode(keys).decode() for keys in blocked],
    )


async def signal(store: Store, id: UUID, name: str, data: str) -> bool:
    """Send a signal; returns whether the job waited for it."""
    return bool(await store.fetchval("select howdah.signal($1, $2, $3)", id, name, data))
