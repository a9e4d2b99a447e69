"""Completion: complete a job in a transaction that has other effects, too.

In SQL  sql/60_settle/complete_in_transaction.sql

The transaction is the caller's, on a connection of any driver (caller_connection.py), or one on a
connection that howdah opens for a handler. Errors of the database are raised by the driver,
unchanged; a stale lease is the exception.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import asyncpg
import msgspec

from howdah.errors import BadInput, StaleLease
from howdah.job import Claim
from howdah.store.caller_connection import Driver, fetch_value
from howdah.store.store import Store

if TYPE_CHECKING:
    Pool = asyncpg.Pool[asyncpg.Record]

State = Literal["completed", "open", "held", "lost"]
STALE_LEASE = "HW010"

_SET = """
    select case when to_regprocedure('howdah.complete_in_transaction(jsonb)') is not null
                then set_config('howdah.transaction', cast({} as text), true) end
"""
_COMPLETE = "select howdah.complete_in_transaction(cast(cast({} as text) as jsonb))"
_BEGIN = """
    select set_config('howdah.transaction', $1, true),
           set_config('idle_in_transaction_session_timeout', $2, true)
"""
_STATE = "select howdah.completion_state($1, $2, $3)"


class HeldJob(msgspec.Struct, frozen=True):
    """The job that a handler is about to complete, with its job."""

    worker_id: str
    claim: Claim
    began: float  # time.monotonic()
    transaction: str  # what the setting howdah.transaction says while the transaction is open


async def mark(conn: Any, driver: Driver, job: HeldJob) -> None:
    """Mark the transaction in which the job will be completed: the mark ends with it."""
    if await fetch_value(conn, driver, _SET, job.transaction) is None:
        raise BadInput(
            "complete_in: the database of conn has no howdah schema, or an older one: give a "
            "connection to the database of the queue"
        )


async def complete(
    conn: Any, driver: Driver, job: HeldJob, result: str | None, *, again: bool = False
) -> bool:
    """Complete the job in the marked transaction.

    `again`: it may have been completed in it before; then the answer is False.
    """
    completion: dict[str, object] = {
        "worker_id": job.worker_id,
        "id": job.claim.id,
        "attempt": job.claim.attempt,
        "began_ago": time.monotonic() - job.began,
        "transaction": job.transaction,
    }
    if result is not None:
        completion["result"] = msgspec.Raw(result.encode())
    try:
        answer = await fetch_value(
            conn, driver, _COMPLETE, msgspec.json.encode(completion).decode()
        )
    except Exception as error:
        if STALE_LEASE in _states_of(error):
            raise StaleLease(
                f"job {job.claim.id} is no longer this handler's: it was cancelled or given to "
                "another worker. Let this error end the transaction: nothing that it wrote may stay"
            ) from error
        raise
    if answer == "no transaction":
        raise BadInput(
            "complete_in needs an open transaction, and conn has none: it is in autocommit mode, "
            "or the transaction has ended. Begin one (conn.transaction(), conn.begin(), "
            "transaction.atomic()), write in it, and call complete_in as its last statement"
        )
    if answer == "other database":
        raise BadInput(
            "complete_in: conn is connected to another database than the queue: give a connection "
            "to the database of the queue, because both must be in one transaction"
        )
    if answer == "again" and not again:
        raise BadInput(
            f"job {job.claim.id} was completed already: call complete_in once, as the last "
            "statement of the transaction"
        )
    return answer == "completed"


def _states_of(error: BaseException) -> Iterator[object]:
    """Yield the SQLSTATE of a driver's error, also of one that SQLAlchemy or Django has wrapped."""
    for each in (error, getattr(error, "orig", None), error.__cause__):
        yield getattr(each, "sqlstate", None)
        yield getattr(each, "pgcode", None)


async def begin(connection: Any, job: HeldJob, idle: float) -> None:
    """Mark a transaction that has just begun, and limit how long it may be idle."""
    await connection.execute(_BEGIN, job.transaction, f"{max(1, round(idle * 1000))}ms")


async def state(store: Store, job: HeldJob) -> State:
    """Find out what became of a completion."""
    return await store.fetchval(_STATE, job.worker_id, job.claim.id, job.claim.attempt)


async def open_pool(store: Store, size: int) -> Pool:
    """Open a pool for handlers. Its connections are as asyncpg makes them, and reset after use."""

    async def connect(*_: object, **options: Any) -> asyncpg.Connection[asyncpg.Record]:
        return await store.connect_plainly(**options)

    return await asyncpg.create_pool(connect=connect, min_size=0, max_size=size)
