"""Call: one function per verb of the engine but enqueue, values in and values out.

Each is one round trip and one transaction. Verbs a worker calls without having to wait for
the disk go through `howdah.relaxed()`: after a crash they are at worst done again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from howdah.job import Claim, Job, Lease
from howdah.outcomes import Ending
from howdah.states import State, Verb
from howdah.store.rows import JOB_COLUMNS, job_from
from howdah.store.store import Store

if TYPE_CHECKING:
    from howdah.store.store import Connection

_CLAIM_COLUMNS = """
    id, job_type, priority, data, attempts, max_attempts, date_part('epoch', place),
    date_part('epoch', created_at), date_part('epoch', claimed_at)
"""
_CLAIM = f"""
    select {_CLAIM_COLUMNS} from howdah.relaxed(), howdah.claim($1, $2, $3, $4, $5, $6, $7, $8)
"""  # noqa: S608 - nothing but the column list is put in
_CLAIM_TRACED = _CLAIM.replace(_CLAIM_COLUMNS, f"{_CLAIM_COLUMNS}, trace")
_CLAIM_NEXT = f"select {_CLAIM_COLUMNS} from howdah.relaxed(), howdah.claim_next($1, $2, $3)"  # noqa: S608
_CLAIM_NEXT_TRACED = _CLAIM_NEXT.replace(_CLAIM_COLUMNS, f"{_CLAIM_COLUMNS}, trace")


class Stretches(NamedTuple):
    """Parts of lines to claim from; see sql/40_claim/claim.sql."""

    job_types: list[str]
    after_ranks: list[int]
    after_places: list[Any]
    after_ids: list[UUID]
    until_ranks: list[int]


async def claim(
    store: Store, worker_id: str, batch_size: int, line: Stretches, in_turn: bool = True
) -> list[Claim]:
    sql = _CLAIM if store.tracing is None else _CLAIM_TRACED
    rows = await store.fetch(sql, worker_id, batch_size, *line, in_turn)
    return [Claim(*row) for row in rows]


async def claim_next(store: Store, worker_id: str, batch_size: int, job_type: str) -> list[Claim]:
    sql = _CLAIM_NEXT if store.tracing is None else _CLAIM_NEXT_TRACED
    return [Claim(*row) for row in await store.fetch(sql, worker_id, batch_size, job_type)]


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


async def start(store: Store, worker_id: str, running: Sequence[tuple[Claim, float]]) -> set[UUID]:
    """Mark attempts as running; each comes with the monotonic time its handler began."""
    now = time.monotonic()
    return await _ids(
        store,
        "select s.* from howdah.relaxed(), howdah.start($1, $2, $3, $4) as s",
        worker_id,
        [claim.id for claim, _ in running],
        [claim.attempt for claim, _ in running],
        [timedelta(seconds=now - began) for _, began in running],
    )


async def progress(
    store: Store, worker_id: str, reports: Sequence[tuple[Claim, int | None, str | None]]
) -> set[UUID]:
    return await _ids(
        store,
        "select p.* from howdah.relaxed(), howdah.progress($1, $2, $3, $4, $5) as p",
        worker_id,
        [claim.id for claim, _, _ in reports],
        [claim.attempt for claim, _, _ in reports],
        [percent for _, percent, _ in reports],
        [stage for _, _, stage in reports],
    )


async def emit(store: Store, worker_id: str, events: Sequence[tuple[Claim, str, str]]) -> set[UUID]:
    return await _ids(
        store,
        "select e.* from howdah.relaxed(), howdah.emit($1, $2, $3, $4, $5) as e",
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
    """Say that the worker lives; returns which of the held attempts it has lost."""
    rows = await connection.fetch(
        "select b.* from howdah.relaxed(), howdah.beat($1, $2, $3, $4, $5) as b",
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
    """Say that a worker lives that cannot say it itself; since when, and the types it holds."""
    await connection.execute(
        "select from howdah.relaxed(), howdah.workers as w, "
        "howdah.beat(w.id, p_silent_after => $2, p_info => w.info || jsonb_build_object('held_up', "
        "jsonb_build_object('seconds', $3::float8, 'now', true, 'types', array(select distinct "
        "j.job_type from howdah.jobs_live as j where j.worker_id = w.id order by 1 limit 5)))) "
        "where w.id = $1",
        worker_id,
        silent_after,
        held_up,
    )


async def held(store: Store, worker_id: str) -> list[tuple[UUID, int]]:
    """Return the attempts that the database says a worker holds."""
    rows = await store.fetch(
        "select id, attempts from howdah.jobs "
        "where worker_id = $1 and status in ('claimed', 'running')",
        worker_id,
    )
    return [(row[0], row[1]) for row in rows]


async def leave(store: Store, worker_id: str) -> None:
    await store.fetchval("select howdah.leave($1)", worker_id)


def _leases(endings: Sequence[Ending]) -> tuple[list[UUID], list[int], list[timedelta | None]]:
    now = time.monotonic()
    return (
        [ending.claim.id for ending in endings],
        [ending.claim.attempt for ending in endings],
        [None if e.began is None else timedelta(seconds=now - e.began) for e in endings],
    )


_COMPLETE = """
    select case when count(*) < cardinality($2) then coalesce(array_agg(id), '{}') end
    from howdah.complete($1, $2, $3, $4, $5) as id
"""  # the ids only where some did not move: nearly always all do


async def complete(
    store: Store, worker_id: str, endings: Sequence[Ending], results: Sequence[str | None]
) -> set[UUID]:
    ids, attempts, ran = _leases(endings)
    said = None if all(result is None for result in results) else list(results)
    moved = await store.fetchval(_COMPLETE, worker_id, ids, attempts, said, ran)
    return set(ids if moved is None else moved)


async def fail(
    store: Store,
    worker_id: str,
    endings: Sequence[Ending],
    errors: Sequence[str],
    tracebacks: Sequence[str | None],
) -> set[UUID]:
    ids, attempts, ran = _leases(endings)
    return await _ids(
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
    return await _ids(
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
    return await _ids(
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
    store: Store, verb: Verb, leases: Sequence[Lease], said: Sequence[Any]
) -> set[UUID]:
    """Settle attempts by their leases alone: the low level, one call per worker id."""
    moved: set[UUID] = set()
    for worker_id in dict.fromkeys(lease.worker_id for lease in leases):
        own = [
            (lease, word)
            for lease, word in zip(leases, said, strict=True)
            if lease.worker_id == worker_id
        ]
        moved |= await _ids(
            store,
            _SETTLE_LEASES[verb],
            worker_id,
            [lease.id for lease, _ in own],
            [lease.attempt for lease, _ in own],
            [word for _, word in own],
        )
    return moved


async def retry_leases(
    store: Store, leases: Sequence[Lease], errors: Sequence[str], delay: timedelta
) -> dict[UUID, State]:
    """Retry attempts by their leases alone; says where each of them went."""
    moved: dict[UUID, State] = {}
    for worker_id in dict.fromkeys(lease.worker_id for lease in leases):
        own = [
            (lease, e)
            for lease, e in zip(leases, errors, strict=True)
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
    return await _ids(store, "select howdah.cancel($1::uuid[], $2::text)", list(ids), reason)


async def requeue(store: Store, ids: Sequence[UUID], attempts: int) -> set[UUID]:
    return await _ids(store, "select howdah.requeue($1, $2)", list(ids), attempts)


class Recovered(NamedTuple):
    """A job taken from a worker that fell silent."""

    id: UUID
    status: State
    worker_id: str


async def recover_stale_jobs(store: Store, timeout: timedelta) -> list[Recovered]:
    rows = await store.fetch(
        "select id, status, worker_id from howdah.recover_stale_jobs($1)", timeout
    )
    return [Recovered(row[0], State(row[1]), row[2]) for row in rows]


class Kept(NamedTuple):
    """What one round of upkeep did."""

    promoted: int
    recovered: int
    failed: int
    silent_workers: list[str]
    next_due_in: timedelta | None


async def upkeep(store: Store, timeout: timedelta, worker_id: str) -> Kept | None:
    """Do one round of upkeep; None when another worker is at it."""
    rows = await store.fetch(
        "select promoted, recovered, failed, silent_workers, next_due_in "
        "from howdah.relaxed(), howdah.upkeep($1, $2)",
        timeout,
        worker_id,
    )
    if not rows:
        return None
    promoted, recovered, failed, silent_workers, next_due_in = rows[0]
    return Kept(promoted, recovered, failed, silent_workers or [], next_due_in)


async def promote_due(store: Store, worker_id: str) -> tuple[int, timedelta | None] | None:
    """Promote, and say how long the next job has to wait; None when another worker is at it."""
    rows = await store.fetch(
        "select promoted, next_due_in from howdah.relaxed(), howdah.promote_due($1)", worker_id
    )
    return (rows[0][0], rows[0][1]) if rows else None


async def promote(store: Store, limit: int = 1000) -> int:
    return await store.fetchval("select count(*) from howdah.promote($1)", limit)


A_STEP = 600.0  # seconds to carry many strays to their day


async def prune(store: Store, keep: timedelta | None = None) -> list[str]:
    """Forget what is old and make room for the days ahead; returns what was dropped."""
    dropped = await store.fetch("select howdah.prune($1)", keep)
    async with store.acquire() as connection:
        # in steps, each with time of its own: giving one up would only do it all again
        while await connection.fetch("select howdah.prepare_days()", timeout=A_STEP):
            pass
    return [row[0] for row in dropped]


async def _ids(store: Store, sql: str, *args: object) -> set[UUID]:
    return {row[0] for row in await store.fetch(sql, *args)}
