"""Enqueue: enqueue one job or a stream of jobs.

Comes before  store/enqueue.py   which writes them
In SQL        sql/30_enqueue/

Drafts are checked before anything is sent. With the caller's own connection, the jobs are part of
the caller's transaction.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, get_args
from uuid import UUID

from howdah.admit import check_key
from howdah.checks.durations import check_length, check_wait
from howdah.checks.unique import UniqueRule
from howdah.errors import BadInput
from howdah.handler import check_job_type
from howdah.job import NEVER, Draft
from howdah.store import Store, caller_connection
from howdah.store import enqueue as store_enqueue
from howdah.store.enqueue import Added
from howdah.store.ids import new_id
from howdah.text.reasons import shown

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1


def draft(
    job_type: str,
    data: str,
    *,
    priority: int | None = None,
    run_at: datetime | None = None,
    delay: timedelta | float | None = None,
    max_attempts: int | None = None,
    expires: timedelta | float | None = None,
    expires_at: datetime | None = None,
    unique: UniqueRule | None = None,
    id: UUID | None = None,
    key: object = None,
) -> Draft:
    """Make a draft with an encoded payload; refuses values that the database would refuse."""
    return Draft(
        id=id or new_id(),
        job_type=check_job_type(job_type),
        data=data,
        priority=None if priority is None else check_priority(priority),
        max_attempts=None if max_attempts is None else check_max_attempts(max_attempts),
        run_at=check_run_at(run_at),
        delay=check_delay(delay, run_at),
        expires=check_expires(expires, expires_at),
        expires_at=check_expires_at(expires_at, run_at),
        unique=None if unique is None else unique.of(job_type, data),
        key=None if key is None else check_key(key),
    )


def check_priority(priority: int) -> int:
    if not isinstance(priority, int) or isinstance(priority, bool):  # pyright: ignore
        raise BadInput(f"priority must be a whole number, not {priority!r}")
    if not _LOWEST <= priority <= _HIGHEST:
        raise BadInput(f"priority must be between {_LOWEST} and {_HIGHEST}, not {priority}")
    return int(priority)


def check_max_attempts(max_attempts: int) -> int:
    if not isinstance(max_attempts, int) or isinstance(max_attempts, bool):  # pyright: ignore
        raise BadInput(f"max_attempts must be a whole number, not {max_attempts!r}")
    if not 1 <= max_attempts < 2**31:
        raise BadInput(f"max_attempts must be at least 1, not {max_attempts}")
    return max_attempts


def check_run_at(run_at: datetime | None) -> datetime | None:
    return None if run_at is None else _check_instant("run_at", run_at, "delay")


def _check_instant(what: str, at: datetime, length: str) -> datetime:
    """Return an instant that the database can store; `length` is the option for a length."""
    if not isinstance(at, datetime):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(f"{what} must be a datetime, not {shown(at)}")
    if at.utcoffset() is None:
        raise BadInput(
            f"{what}={at.isoformat()} has no time zone: "
            f"use datetime.now(UTC) + …, or {length}=timedelta(…)"
        )
    if not 2 <= at.year <= 9997:
        raise BadInput(f"{what}={at.isoformat()} must be in the years 2 to 9997")
    return at


def check_expires(
    expires: timedelta | float | None, expires_at: datetime | None
) -> timedelta | None:
    if expires is None or expires == NEVER:
        return NEVER if expires is not None and expires_at is None else None
    if expires_at is not None:
        raise BadInput("give expires or expires_at, not both")
    if isinstance(expires, datetime):
        raise BadInput(
            f"expires is a length of time: give the instant {shown(expires)} as expires_at"
        )
    return check_length("expires", expires)


def check_expires_at(expires_at: datetime | None, run_at: datetime | None) -> datetime | None:
    if expires_at is None:
        return None
    checked = _check_instant("expires_at", expires_at, "expires")
    if run_at is not None and checked <= run_at:
        raise BadInput(
            f"expires_at={checked.isoformat()} is not after run_at={run_at.isoformat()}: "
            "the job could never run"
        )
    return checked


def check_delay(delay: timedelta | float | None, run_at: datetime | None) -> timedelta | None:
    if delay is None:
        return None
    if run_at is not None:
        raise BadInput("give run_at or delay, not both")
    return check_wait("delay", delay)


def check_stream(drafts: object) -> None:
    """Refuse an object that cannot be a stream of drafts."""
    stream: Any = drafts
    if isinstance(stream, str | bytes | Mapping) or not isinstance(
        stream, Iterable | AsyncIterable
    ):
        raise BadInput(f"enqueue_many takes a list or a stream of drafts, not {shown(drafts)}")


async def enqueue(store: Store, draft: Draft, conn: Any = None) -> UUID:
    """Enqueue one job, in its own transaction or in the caller's.

    Returns its id; or the id of the job that has its unique key.
    """
    if store.tracing is not None:
        with store.tracing.enqueueing(draft) as traced:
            return await _enqueue(store, traced, conn)
    return await _enqueue(store, draft, conn)


async def _enqueue(store: Store, draft: Draft, conn: Any) -> UUID:
    if conn is None:
        return await store_enqueue.enqueue(store, draft)
    return await caller_connection.enqueue(store, conn, draft)


async def enqueue_many(
    store: Store, drafts: Iterable[Draft] | AsyncIterable[Draft], conn: Any = None
) -> int:
    """Enqueue a stream of jobs, all or none; the stream is never in memory as a whole.

    Returns how many were added, without those whose unique key another job has. With the caller's
    own connection, the caller's transaction decides about all or none.
    """
    return (await _enqueue_stream(store, drafts, conn)).added


async def _enqueue_stream(
    store: Store, drafts: Iterable[Draft] | AsyncIterable[Draft], conn: Any
) -> Added:
    check_stream(drafts)
    if store.tracing is not None:
        with store.tracing.enqueueing_many(drafts) as traced:
            return await _enqueue_many(store, traced, conn)
    return await _enqueue_many(store, drafts, conn)


Returning = Literal["count", "ids", "handles"]


def check_returning(returning: str) -> None:
    if returning not in get_args(Returning):
        raise BadInput(f'returning must be "count", "ids" or "handles", not {returning!r}')


class Enqueued(NamedTuple):
    """A draft of a stream: the id of its job, and whether that job existed before."""

    id: UUID
    existed: bool


async def enqueue_many_ids(
    store: Store, drafts: Iterable[Draft] | AsyncIterable[Draft], conn: Any = None
) -> list[Enqueued]:
    """Do the same as enqueue_many, and return the jobs in the order of the stream."""
    ids: list[UUID] = []
    stream = (
        _collect_ids_async(drafts, ids)
        if isinstance(drafts, AsyncIterable)
        else _collect_ids(drafts, ids)
    )
    holders = (await _enqueue_stream(store, stream, conn)).holders
    return [Enqueued(holders.get(id, id), id in holders) for id in ids]


def _collect_ids(drafts: Iterable[Draft], ids: list[UUID]) -> Generator[Draft]:
    for draft in drafts:
        ids.append(store_enqueue.check_draft(draft).id)
        yield draft


async def _collect_ids_async(
    drafts: AsyncIterable[Draft], ids: list[UUID]
) -> AsyncGenerator[Draft]:
    async for draft in drafts:
        ids.append(store_enqueue.check_draft(draft).id)
        yield draft


async def _enqueue_many(
    store: Store, drafts: Iterable[Draft] | AsyncIterable[Draft], conn: Any
) -> Added:
    if conn is None:
        return await store_enqueue.enqueue_many(store, drafts)
    return await caller_connection.enqueue_many(store, conn, drafts)
