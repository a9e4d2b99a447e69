"""Enqueue: drafts on their way into the database, one by a call, a stream of them by COPY.

A stream is one transaction, all of it or nothing, and is never held as a whole. An error of
the stream itself comes through as it was raised, not as trouble with the database.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from uuid import UUID

import msgspec

from howdah import payload
from howdah.errors import BadInput, HowdahError
from howdah.job import Draft
from howdah.store.store import Store

COPYING = 7 * 24 * 3600.0  # seconds: a stream may take as long as whoever feeds it

_ENQUEUE = "call howdah.enqueue_now($1, $2, $3, $4, $5, $6, $7)"
_ENQUEUE_TRACED = "call howdah.enqueue_now($1, $2, $3, $4, $5, $6, $7, $8)"
_COLUMNS = ("id", "job_type", "data", "priority", "max_attempts")
_COPIED = "select howdah.refuse_used_ids($1, $2), howdah.refuse_max_attempts($3), howdah.wake($4)"
_DEFAULTS = "select priority, max_attempts from howdah.type_defaults($1)"
_WAITING = "select count(*) from howdah.enqueue_many($1)"

BATCH = 1000  # drafts per statement
BATCH_CHARACTERS = 8 * 1024 * 1024  # of payload; jsonb holds no array above 256 MiB


def check_draft(draft: Draft) -> Draft:
    """Refuse what is not a draft: a stream is only known once it flows."""
    if not isinstance(draft, Draft):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadInput(
            f"enqueue_many takes drafts (job.draft(…), queue.draft(…)), not {type(draft).__name__}"
        )
    return draft


def is_full(batch: Sequence[Draft], size: int) -> bool:
    """Whether a batch with so many characters of payload should be sent now."""
    return len(batch) >= BATCH or size >= BATCH_CHARACTERS


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
    """Stream drafts into the database in one transaction: all of them or none."""
    streamed = _Streamed(drafts, traced=store.tracing is not None)
    try:
        await _write(store, streamed)
    except HowdahError:
        if streamed.broken is not None:  # the stream's own error, not the database's
            raise streamed.broken from None
        raise
    return streamed.count


async def _write(store: Store, streamed: _Streamed) -> None:
    async with store.acquire() as connection, connection.transaction():
        streamed.limit = store.payload_limit
        while not streamed.ended:
            await connection.copy_records_to_table(
                "jobs_live",
                schema_name="howdah",
                columns=[*_COLUMNS, "trace"] if streamed.traced else _COLUMNS,
                records=streamed.records(),
                timeout=COPYING,
            )
            if (name := streamed.unknown_type) is not None:
                row = (await connection.fetch(_DEFAULTS, name))[0]
                streamed.defaults[name] = (row[0], row[1])
            if waiting := streamed.take_waiting():
                await connection.fetchval(_WAITING, as_json(waiting))
        if streamed.first is not None:
            await connection.fetchval(
                _COPIED,
                streamed.first,
                streamed.last,
                streamed.max_attempts,
                sorted(streamed.ready_types),
            )


_Record = tuple[object, ...]


class _Streamed:
    """Drafts on their way into COPY, and what the database is to be told of them afterwards.

    COPY takes jobs that are due at once. Those with a time are put aside, a batch at a time. At a
    draft that leaves its priority or max_attempts to its type, COPY stops until those are known.
    """

    def __init__(self, drafts: Iterable[Draft] | AsyncIterable[Draft], *, traced: bool) -> None:
        self._drafts = aiter(drafts) if isinstance(drafts, AsyncIterable) else iter(drafts)
        self.traced = traced
        self.limit = payload.MAX_BYTES
        self.ended = False
        self.broken: Exception | None = None  # what the stream itself raised
        self.count = 0
        # of those that were copied
        self.ready_types: set[str] = set()
        self.first: UUID | None = None
        self.last: UUID | None = None
        self.max_attempts = 0
        self._waiting: list[Draft] = []
        self._waiting_size = 0
        self.defaults: dict[str, tuple[int, int]] = {}  # of types that drafts left it to
        self._kept: Draft | None = None  # whose type's are not known

    @property
    def unknown_type(self) -> str | None:
        """The type whose priority and max_attempts must be known to go on."""
        return None if self._kept is None else self._kept.job_type

    def take_waiting(self) -> list[Draft]:
        """Return the drafts that were put aside, once."""
        waiting, self._waiting, self._waiting_size = self._waiting, [], 0
        return waiting

    def records(self) -> Iterable[_Record] | AsyncIterable[_Record]:
        """Yield records for COPY until the stream ends, or too many drafts were put aside."""
        if isinstance(self._drafts, AsyncIterator):
            return self._records_async(self._drafts)
        return self._records(self._drafts)

    def _records(self, drafts: Iterator[Draft]) -> Generator[_Record]:
        try:
            if self._kept is not None:
                yield self._record(self._kept)
                self._kept = None
            for draft in drafts:
                if self._waits(draft):
                    if self._kept is not None or is_full(self._waiting, self._waiting_size):
                        return
                else:
                    yield self._record(draft)
            self.ended = True
        except Exception as error:
            self.broken = error
            raise

    async def _records_async(self, drafts: AsyncIterator[Draft]) -> AsyncGenerator[_Record]:
        try:
            if self._kept is not None:
                yield self._record(self._kept)
                self._kept = None
            async for draft in drafts:
                if self._waits(draft):
                    if self._kept is not None or is_full(self._waiting, self._waiting_size):
                        return
                else:
                    yield self._record(draft)
            self.ended = True
        except Exception as error:
            self.broken = error
            raise

    def _waits(self, draft: Draft) -> bool:
        """Check a draft, and put it aside if it has a time of its own or asks for its type's."""
        check_size(check_draft(draft), self.limit)
        self.count += 1
        if draft.delay is None and draft.run_at is None:
            if draft.priority is not None and draft.max_attempts is not None:
                return False
            if draft.job_type in self.defaults:
                return False
            self._kept = draft
            return True
        self._waiting.append(draft)
        self._waiting_size += len(draft.data)
        return True

    def _record(self, draft: Draft) -> _Record:
        self.ready_types.add(draft.job_type)
        priority, max_attempts = draft.priority, draft.max_attempts
        if priority is None or max_attempts is None:
            usual = self.defaults[draft.job_type]
            priority = usual[0] if priority is None else priority
            max_attempts = usual[1] if max_attempts is None else max_attempts
        self.max_attempts = max(self.max_attempts, max_attempts)
        if self.first is None or self.last is None:
            self.first = self.last = draft.id
        elif draft.id > self.last:  # nearly always: ids are made in the order of time
            self.last = draft.id
        elif draft.id < self.first:
            self.first = draft.id
        record = (draft.id, draft.job_type, draft.data, priority, max_attempts)
        return (*record, draft.trace) if self.traced else record


def as_json(drafts: list[Draft]) -> str:
    """Write drafts as the argument of howdah.enqueue_many."""
    return msgspec.json.encode(
        [
            {
                "id": draft.id,
                "job_type": draft.job_type,
                "data": msgspec.Raw(draft.data.encode()),
                "priority": draft.priority,
                "max_attempts": draft.max_attempts,
                "run_at": draft.run_at,
                "delay": draft.delay,
                "trace": draft.trace,
            }
            for draft in drafts
        ]
    ).decode()
