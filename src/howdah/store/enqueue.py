"""Enqueue: drafts on their way into the database, one by a call, a stream of them by COPY.

A stream is one transaction, all of it or nothing, and is never held as a whole. An error of
the stream itself comes through as it was raised, not as trouble with the database.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from datetime import datetime

from howdah import payload
from howdah.errors import BadInput, HowdahError
from howdah.job import Draft
from howdah.store.store import Store

COPYING = 7 * 24 * 3600.0  # seconds: a stream may take as long as whoever feeds it

_ENQUEUE = "call howdah.hand_over($1, $2, $3, $4, $5, $6, $7)"
_ENQUEUE_TRACED = "call howdah.hand_over($1, $2, $3, $4, $5, $6, $7, $8)"
_COLUMNS = ("id", "job_type", "data", "priority", "max_attempts", "run_at", "place")


def check_draft(draft: Draft) -> Draft:
    """Refuse what is not a draft: a stream is only known once it flows."""
    if not isinstance(draft, Draft):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"enqueue_many takes drafts (job.draft(…), queue.draft(…)), not {type(draft).__name__}"
        )
    return draft


def check_size(draft: Draft, limit: int) -> None:
    if len(draft.data) * 4 > limit:
        payload.check_size(draft.data, f"the payload of {draft.job_type}", limit)


async def enqueue(store: Store, draft: Draft) -> None:
    async with store.acquire() as connection:
        check_size(draft, store.payload_limit)
        await connection.execute(
            _ENQUEUE if draft.trace is None else _ENQUEUE_TRACED,
            draft.job_type,
            draft.data,
            draft.priority,
            draft.run_at,
            draft.max_attempts,
            draft.id,
            draft.delay,
            *(() if draft.trace is None else (draft.trace,)),
        )


async def enqueue_many(store: Store, drafts: Iterable[Draft] | AsyncIterable[Draft]) -> int:
    """Stream drafts through COPY in one transaction: all of them or none."""
    streamed = _Streamed(drafts, traced=store.tracing is not None)
    try:
        await _copy(store, streamed)
    except HowdahError:
        if streamed.broken is not None:  # the stream's own error, not the database's
            raise streamed.broken from None
        raise
    return streamed.count


async def _copy(store: Store, streamed: _Streamed) -> None:
    async with store.acquire() as connection, connection.transaction():
        streamed.limit = store.payload_limit
        now = await connection.fetchval("select howdah.clock()")
        await connection.copy_records_to_table(
            "jobs_live",
            schema_name="howdah",
            columns=[*_COLUMNS, "trace"] if streamed.traced else _COLUMNS,
            records=streamed.records(now),
            timeout=COPYING,
        )
        if streamed.ready_types:
            await connection.fetchval("select howdah.wake($1)", sorted(streamed.ready_types))


_Record = tuple[object, ...]


class _Streamed:
    """Drafts on their way into COPY: counted, and their types noted for the wake."""

    def __init__(self, drafts: Iterable[Draft] | AsyncIterable[Draft], *, traced: bool) -> None:
        self._drafts = drafts
        self.traced = traced
        self.limit = payload.MAX_BYTES
        self.count = 0
        self.ready_types: set[str] = set()
        self.broken: Exception | None = None  # what the stream itself raised

    def records(self, now: datetime) -> Iterable[_Record] | AsyncIterable[_Record]:
        if isinstance(self._drafts, AsyncIterable):
            return self._records_async(self._drafts, now)
        return self._records(self._drafts, now)

    def _records(self, drafts: Iterable[Draft], now: datetime) -> Generator[_Record]:
        try:
            for draft in drafts:
                yield self._record(draft, now)
        except Exception as error:
            self.broken = error
            raise

    async def _records_async(
        self, drafts: AsyncIterable[Draft], now: datetime
    ) -> AsyncGenerator[_Record]:
        try:
            async for draft in drafts:
                yield self._record(draft, now)
        except Exception as error:
            self.broken = error
            raise

    def _record(self, draft: Draft, now: datetime) -> _Record:
        check_size(check_draft(draft), self.limit)
        self.count += 1
        run_at = draft.run_at if draft.delay is None else now + draft.delay
        waits = run_at is not None and run_at > now
        if not waits:
            self.ready_types.add(draft.job_type)
        record = (
            draft.id,
            draft.job_type,
            draft.data,
            draft.priority,
            draft.max_attempts,
            run_at,
            None if waits else now,
        )
        return (*record, draft.trace) if self.traced else record
