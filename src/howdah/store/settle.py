"""Settle: one call per way in which an attempt ends.

In SQL  sql/60_settle/

Each call takes leases and returns the jobs that it moved. A job that is missing had a stale lease.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from howdah.job import Claim, Lease
from howdah.outcomes import Ending
from howdah.states import State, Verb
from howdah.store.claim import CLAIM_COLUMNS
from howdah.store.store import Store, fetch_ids


def _leases(endings: Sequence[Ending]) -> tuple[list[UUID], list[int], list[float | None]]:
    """Return ids, attempts, and how many seconds ago each handler began."""
    now = time.monotonic()
    return (
        [ending.claim.id for ending in endings],
        [ending.claim.attempt for ending in endings],
        [None if e.began is None else now - e.began for e in endings],
    )


_COMPLETE = """
    select case when count(*) < cardinality($2) then coalesce(array_agg(id), '{}') end
    from howdah.complete($1, $2, $3, $4, $5) as id
"""  # returns ids only if some did not move: nearly always all do


async def complete(
    store: Store, worker_id: str, endings: Sequence[Ending], results: Sequence[str | None]
) -> set[UUID]:
    ids, attempts, ran = _leases(endings)
    given = list(results) if any(results) else None
    moved = await store.fetchval(_COMPLETE, worker_id, ids, attempts, given, ran)
    return set(ids if moved is None else moved)


_COMPLETE_AND_CLAIM = f"""
    select status is null, {CLAIM_COLUMNS}
    from howdah.complete_and_claim($1, $2, $3, $4, $5, $6)
"""  # noqa: S608 - nothing but the column list is put in
_COMPLETE_AND_CLAIM_TRACED = _COMPLETE_AND_CLAIM.replace(CLAIM_COLUMNS, f"{CLAIM_COLUMNS}, trace")


async def complete_and_claim(
    store: Store,
    worker_id: str,
    endings: Sequence[Ending],
    results: Sequence[str | None],
    job_types: Sequence[str],
) -> tuple[set[UUID], list[Claim]]:
    """Complete, and claim jobs that get the slots; returns the jobs that moved, and the claims."""
    ids, attempts, ran = _leases(endings)
    given = list(results) if any(results) else None
    sql = _COMPLETE_AND_CLAIM if store.tracing is None else _COMPLETE_AND_CLAIM_TRACED
    rows = await store.fetch(sql, worker_id, ids, attempts, given, ran, list(job_types))
    stale = {row[1] for row in rows if row[0]}
    claims = [Claim(*row[1:]) for row in rows if not row[0]]
    return {id for id in ids if id not in stale} if stale else set(ids), claims


async def fail(
    store: Store,
    worker_id: str,
    endings: Sequence[Ending],
    errors: Sequence[str],
    tracebacks: Sequence[str | None],
) -> set[UUID]:
    ids, attempts, ran = _leases(endings)
    return await fetch_ids(
        store,
        "select howdah.fail($1, $2, $3, $4, $5, $6)",
        worker_id,
        ids,
        attempts,
        list(errors),
        list(tracebacks),
        ran,
    )


async def retry(
    store: Store,
    worker_id: str,
    endings: Sequence[Ending],
    errors: Sequence[str],
    delays: Sequence[timedelta],
    tracebacks: Sequence[str | None],
) -> dict[UUID, State]:
    ids, attempts, ran = _leases(endings)
    rows = await store.fetch(
        "select id, status from howdah.retry($1, $2, $3, $4, $5, $6, $7)",
        worker_id,
        ids,
        attempts,
        list(errors),
        list(delays),
        list(tracebacks),
        ran,
    )
    return {row[0]: State(row[1]) for row in rows}


async def hand_back(
    store: Store,
    worker_id: str,
    endings: Sequence[Ending],
    errors: Sequence[str],
    signatures: Sequence[str | None],
) -> dict[UUID, State]:
    ids, attempts, _ = _leases(endings)
    rows = await store.fetch(
        "select id, status from howdah.hand_back($1, $2, $3, $4, $5)",
        worker_id,
        ids,
        attempts,
        list(errors),
        list(signatures),
    )
    return {row[0]: State(row[1]) for row in rows}


async def release(
    store: Store,
    worker_id: str,
    endings: Sequence[Ending],
    delays: Sequence[timedelta | None] | None = None,
) -> set[UUID]:
    ids, attempts, _ = _leases(endings)
    return await fetch_ids(
        store,
        "select howdah.release($1, $2, $3, $4)",
        worker_id,
        ids,
        attempts,
        None if delays is None else list(delays),
    )


async def cancel_held(
    store: Store, worker_id: str, endings: Sequence[Ending], reasons: Sequence[str]
) -> set[UUID]:
    ids, attempts, ran = _leases(endings)
    return await fetch_ids(
        store,
        "select howdah.cancel($1, $2, $3, $4, $5)",
        worker_id,
        ids,
        attempts,
        list(reasons),
        ran,
    )


_SETTLE_LEASES = {
    Verb.COMPLETE: "select howdah.complete($1, $2, $3, $4::jsonb[])",
    Verb.FAIL: "select howdah.fail($1, $2, $3, $4::text[])",
    Verb.RELEASE: "select howdah.release($1, $2, $3, $4::interval[])",
}


async def settle_leases(
    store: Store, verb: Verb, leases: Sequence[Lease], values: Sequence[Any]
) -> set[UUID]:
    """Settle attempts by their leases, each with its result, error or delay; for queue.complete().

    Makes one call per worker id.
    """
    moved: set[UUID] = set()
    for worker_id in dict.fromkeys(lease.worker_id for lease in leases):
        own = [
            (lease, value)
            for lease, value in zip(leases, values, strict=True)
            if lease.worker_id == worker_id
        ]
        moved |= await fetch_ids(
            store,
            _SETTLE_LEASES[verb],
            worker_id,
            [lease.id for lease, _ in own],
            [lease.attempt for lease, _ in own],
            [value for _, value in own],
        )
    return moved


async def retry_leases(
    store: Store, leases: Sequence[Lease], errors: Sequence[str], delay: timedelta
) -> dict[UUID, State]:
    """Retry attempts by their leases; returns the new state of each."""
    moved: dict[UUID, State] = {}
    for worker_id in dict.fromkeys(lease.worker_id for lease in leases):
        own = [
            (lease, error)
            for lease, error in zip(leases, errors, strict=True)
            if lease.worker_id == worker_id
        ]
        rows = await store.fetch(
            "select id, status from howdah.retry($1, $2, $3, $4, $5)",
            worker_id,
            [lease.id for lease, _ in own],
            [lease.attempt for lease, _ in own],
            [error for _, error in own],
            [delay for _ in own],
        )
        moved |= {row[0]: State(row[1]) for row in rows}
    return moved


async def cancel(store: Store, ids: Sequence[UUID], reason: str) -> set[UUID]:
    return await fetch_ids(store, "select howdah.cancel($1::uuid[], $2::text)", list(ids), reason)
