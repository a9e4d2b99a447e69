"""Claim: take the best jobs of the line that no other transaction has locked.

Comes after   enqueue   which put them in line
Comes before  run/      which gets one `Claim` per attempt
In SQL        sql/40_claim/
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar
from uuid import UUID

from howdah.claim.line import Line
from howdah.errors import HowdahError
from howdah.job import Claim, Job
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import claim as store_claim
from howdah.store.errors import LostRace, about_unreadable_job

_log = log_named("howdah.claim")

T = TypeVar("T")

RACES = 5  # how often a claim that lost a race is sent again at once
FEW = 8  # jobs that a woken worker claims first, without waiting for its turn


async def claim(
    store: Store, worker_id: str, batch_size: int, line: Line, only: Sequence[str] = ()
) -> list[Claim]:
    """Claim up to `batch_size` jobs of the line, of the types in `only` if there are any.

    A worker that was woken for one type names it and claims `FEW`: those need no turn.
    """
    began = time.monotonic()
    scan = line.next_scan(began, only)
    if len(only) == 1 and len(scan.ranges.job_types) <= 2:  # at most one mark
        send = partial(store_claim.claim_next, store, worker_id, batch_size, scan.ranges)
    else:
        send = partial(store_claim.claim, store, worker_id, batch_size, scan.ranges)
    claims = await _send(send)
    now = time.monotonic()
    line.scanned(scan, claims, batch_size, now - began, now)
    return claims


async def claim_rescan(store: Store, worker_id: str, batch_size: int, line: Line) -> list[Claim]:
    """Claim up to `batch_size` jobs from the whole of a slow line.

    It takes no turn, because it runs beside the claims and no claim should wait for it.
    """
    began = time.monotonic()
    claims = await _send(
        partial(store_claim.claim, store, worker_id, batch_size, line.whole(), False)
    )
    now = time.monotonic()
    line.rescanned(claims, batch_size, now - began, now)
    return claims


async def claim_runs(
    store: Store, worker_id: str, heads: Sequence[tuple[Claim, int]]
) -> dict[UUID, list[Claim]]:
    """Claim what follows these jobs in their ordered keys, up to a number for each."""
    return await _send(partial(store_claim.claim_run, store, worker_id, heads))


async def fail_unreadable(
    store: Store, worker_id: str, job_types: Sequence[str], refused: HowdahError
) -> bool:
    """Fail the jobs because of which a claim was refused; returns whether there were any."""
    if not about_unreadable_job(refused):
        return False
    failed = await store_claim.fail_unreadable(store, worker_id, job_types)
    for id, reason in failed:
        _log.error("claim.unreadable id=%s error=%s", id, reason)
    return bool(failed)


async def claim_batch(
    store: Store, worker_id: str, job_types: Sequence[str], batch_size: int
) -> list[Job]:
    """Claim whole jobs, for a loop that is not a worker."""
    while True:
        try:
            return await store_claim.claim_job_batch(store, worker_id, job_types, batch_size)
        except HowdahError as refused:
            if not await fail_unreadable(store, worker_id, job_types, refused):
                raise


async def _send(send: Callable[[], Awaitable[T]]) -> T:
    for _ in range(RACES):
        with suppress(LostRace):  # a plain UPDATE ended a job while this claim locked it
            return await send()
    return await send()
