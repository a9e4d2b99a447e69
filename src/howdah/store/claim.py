"""Claim: the calls that claim jobs, and list what a worker holds.

In SQL  sql/40_claim/

A claim does not wait for the disk (howdah.async_commit()): if a crash loses it, the jobs are
claimed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from howdah.job import Claim, Job
from howdah.store.rows import JOB_COLUMNS, job_from
from howdah.store.store import Store

CLAIM_COLUMNS = """
    id, job_type, priority, data, attempts, max_attempts, date_part('epoch', ready_at),
    date_part('epoch', created_at), date_part('epoch', claimed_at)
"""
_CLAIM = f"""
    select {CLAIM_COLUMNS} from howdah.async_commit(), howdah.claim($1, $2, $3, $4, $5, $6, $7, $8)
"""  # noqa: S608 - nothing but the column list is put in
_CLAIM_TRACED = _CLAIM.replace(CLAIM_COLUMNS, f"{CLAIM_COLUMNS}, trace")
_CLAIM_NEXT = f"""
    select {CLAIM_COLUMNS} from howdah.async_commit(), howdah.claim_next($1, $2, $3, $4, $5, $6)
"""  # noqa: S608
_CLAIM_NEXT_TRACED = _CLAIM_NEXT.replace(CLAIM_COLUMNS, f"{CLAIM_COLUMNS}, trace")

_CLAIM_RUN = f"""
    select head_id, {CLAIM_COLUMNS} from howdah.async_commit(), howdah.claim_run($1, $2, $3, $4)
"""  # noqa: S608
_CLAIM_RUN_TRACED = _CLAIM_RUN.replace(CLAIM_COLUMNS, f"{CLAIM_COLUMNS}, trace")


class ScanRanges(NamedTuple):
    """Key ranges of the line to claim from; see sql/40_claim/claim.sql."""

    job_types: list[str]
    after_ranks: list[int]
    after_ready_at: list[Any]
    after_ids: list[UUID]
    until_ranks: list[int]


async def claim(
    store: Store, worker_id: str, batch_size: int, line: ScanRanges, in_turn: bool = True
) -> list[Claim]:
    sql = _CLAIM if store.tracing is None else _CLAIM_TRACED
    rows = await store.fetch(sql, worker_id, batch_size, *line, in_turn)
    return [Claim(*row) for row in rows]


async def claim_next(
    store: Store, worker_id: str, batch_size: int, line: ScanRanges
) -> list[Claim]:
    """Claim the first jobs of one type: those after its mark, and more urgent ones."""
    sql = _CLAIM_NEXT if store.tracing is None else _CLAIM_NEXT_TRACED
    position = line.job_types[-1], line.after_ranks[-1], line.after_ready_at[-1], line.after_ids[-1]
    return [Claim(*row) for row in await store.fetch(sql, worker_id, batch_size, *position)]


async def claim_run(
    store: Store, worker_id: str, heads: Sequence[tuple[Claim, int]]
) -> dict[UUID, list[Claim]]:
    """Claim the jobs that follow claimed ones in their ordered keys, up to a number for each."""
    rows = await store.fetch(
        _CLAIM_RUN if store.tracing is None else _CLAIM_RUN_TRACED,
        worker_id,
        [head.id for head, _ in heads],
        [head.attempt for head, _ in heads],
        [most for _, most in heads],
    )
    runs: dict[UUID, list[Claim]] = {}
    for head_id, *row in rows:
        runs.setdefault(head_id, []).append(Claim(*row, in_run=True))
    return runs


async def claim_job_batch(
    store: Store, worker_id: str, job_types: Sequence[str], batch_size: int
) -> list[Job]:
    rows = await store.fetch(
        f"select {JOB_COLUMNS} from howdah.claim_job_batch($1, $2, $3)",  # noqa: S608
        worker_id,
        list(job_types),
        batch_size,
    )
    return [job_from(row) for row in rows]


async def fail_unreadable(
    store: Store, worker_id: str, job_types: Sequence[str]
) -> list[tuple[UUID, str]]:
    """Fail the jobs of these types that cannot be read; returns each with the reason."""
    rows = await store.fetch(
        "select id, error from howdah.fail_unreadable($1, $2)", worker_id, list(job_types)
    )
    return [(row[0], row[1]) for row in rows]


async def held(store: Store, worker_id: str) -> list[tuple[UUID, int]]:
    """Return the attempts that the database says a worker holds."""
    rows = await store.fetch(
        "select id, attempts from howdah.jobs "
        "where worker_id = $1 and status in ('claimed', 'running')",
        worker_id,
    )
    return [(row[0], row[1]) for row in rows]
