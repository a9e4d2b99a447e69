"""Enqueue: write drafts into the database, one by a call, a stream by COPY.

In SQL  sql/30_enqueue/

A stream is written in one transaction, all or nothing, and is never in memory as a whole. An error
that the stream itself raises reaches the caller unchanged.
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
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

import msgspec

from howdah import payload
from howdah.errors import BadInput, HowdahError
from howdah.job import NEVER, Draft, Unique
from howdah.store.store import Store

if TYPE_CHECKING:
    from howdah.store.store import Connection

COPY_TIMEOUT = 7 * 24 * 3600.0  # seconds: the caller's stream may be slow

_ENQUEUE = "call howdah.enqueue_now($1, $2, $3, $4, $5, $6, $7)"
_ENQUEUE_TRACED = "call howdah.enqueue_now($1, $2, $3, $4, $5, $6, $7, $8)"
_ENQUEUE_KEYED = "call howdah.enqueue_now($1, $2, $3, $4, $5, $6, $7, $8, p_key => $9)"
_ENQUEUE_EXPIRING = "call howdah.enqueue_now($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
_COLUMNS = ("id", "job_type", "data", "priority", "max_attempts")
_AFTER_COPY = (
    "select howdah.refuse_used_ids($1, $2), howdah.refuse_max_attempts($3), "
    "howdah.limit_copied($1, $2, $4), howdah.wake($4)"
)
_DEFAULTS = "select priority, max_attempts, expires is not null from howdah.type_defaults($1)"
_ENQUEUE_LATER = "select count(*) from howdah.enqueue_many($1)"
_ENQUEUE_UNIQUE = (
    "select id from howdah.enqueue_many($1) with ordinality as job (id, nth) order by nth"
)

BATCH = 1000  # drafts per statement
BATCH_CHARACTERS = 8 * 1024 * 1024  # of payload; jsonb holds no array above 256 MiB


def check_draft(draft: Draft) -> Draft:
    """Refuse an item of a stream that is not a draft."""
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


class Added(NamedTuple):
    """What became of a stream: how many jobs were added, and who had the unique keys of others."""

    added: int
    holders: dict[UUID, UUID]  # by the id of the draft: the job that has its key


async def enqueue(store: Store, draft: Draft) -> UUID:
    """Enqueue one job; returns its id, or that of the job that has its unique key."""
    async with store.acquire() as connection:
        check_size(draft, store.payload_limit)
        if draft.unique is not None:
            return await connection.fetchval(_ENQUEUE_UNIQUE, as_json([draft]))
        statement, more = _statement(draft)
        await connection.execute(
            statement,
            draft.job_type,
            draft.data,
            draft.priority,
            draft.run_at,
            draft.max_attempts,
            draft.id,
            draft.delay,
            *more,
        )
    return draft.id


def _statement(draft: Draft) -> tuple[str, tuple[object, ...]]:
    """Return the shortest call for a draft, and its last arguments."""
    if draft.expires is not NEVER or draft.expires_at is not None:
        return _ENQUEUE_EXPIRING, (draft.trace, draft.expires_at, draft.expires, draft.key)
    if draft.key is not None:
        return _ENQUEUE_KEYED, (draft.trace, draft.key)
    return (_ENQUEUE, ()) if draft.trace is None else (_ENQUEUE_TRACED, (draft.trace,))


async def enqueue_many(store: Store, drafts: Iterable[Draft] | AsyncIterable[Draft]) -> Added:
    """Stream drafts into the database in one transaction: all of them or none."""
    stream = _DraftStream(drafts, traced=store.tracing is not None)
    try:
        await _write(store, stream)
    except HowdahError:
        if stream.error is not None:  # the caller's stream raised it, not the database
            raise stream.error from None
        raise
    return Added(stream.count - len(stream.holders), stream.holders)


async def _write(store: Store, stream: _DraftStream) -> None:
    async with store.acquire() as connection, connection.transaction():
        stream.limit = store.payload_limit
        while not stream.ended:
            await connection.copy_records_to_table(
                "jobs_live",
                schema_name="howdah",
                columns=[*_COLUMNS, "trace"] if stream.traced else _COLUMNS,
                records=stream.records(),
                timeout=COPY_TIMEOUT,
            )
            if (name := stream.unknown_type) is not None:
                row = (await connection.fetch(_DEFAULTS, name))[0]
                stream.defaults[name] = (row[0], row[1], row[2])
            if later := stream.take_later():
                await _write_later(connection, stream, later)
        if stream.lowest_id is not None:
            await connection.fetchval(
                _AFTER_COPY,
                stream.lowest_id,
                stream.highest_id,
                stream.max_attempts,
                sorted(stream.ready_types),
            )


async def _write_later(connection: Connection, stream: _DraftStream, later: list[Draft]) -> None:
    if all(draft.unique is None for draft in later):
        await connection.fetchval(_ENQUEUE_LATER, as_json(later))
        return
    rows = await connection.fetch(_ENQUEUE_UNIQUE, as_json(later))
    stream.holders.update(holders_of(later, [row[0] for row in rows]))


def holders_of(drafts: Sequence[Draft], ids: Sequence[UUID]) -> dict[UUID, UUID]:
    """Return the jobs that have the keys of drafts, by the ids of the drafts."""
    return {draft.id: id for draft, id in zip(drafts, ids, strict=True) if draft.id != id}


_Record = tuple[object, ...]


class _DraftStream:
    """Turns drafts into records for COPY, and gathers what the statements after COPY need.

    COPY takes jobs that are ready at once. Drafts with a time or a key are collected in batches and
    enqueued by a call. COPY stops at a draft whose priority or max_attempts are those of its
    type, until these are read.
    """

    def __init__(self, drafts: Iterable[Draft] | AsyncIterable[Draft], *, traced: bool) -> None:
        self._drafts = aiter(drafts) if isinstance(drafts, AsyncIterable) else iter(drafts)
        self.traced = traced
        self.limit = payload.MAX_BYTES
        self.ended = False
        self.error: Exception | None = None  # what the caller's stream raised
        self.count = 0
        self.holders: dict[UUID, UUID] = {}  # by draft: the job that has its unique key
        # the next four are about the copied drafts only
        self.ready_types: set[str] = set()
        self.lowest_id: UUID | None = None
        self.highest_id: UUID | None = None
        self.max_attempts = 0
        self._later: list[Draft] = []  # drafts with a time or a key
        self._later_size = 0
        # by type: priority, max_attempts, and whether its jobs expire
        self.defaults: dict[str, tuple[int, int, bool]] = {}
        self._pending: Draft | None = None  # waits until the defaults of its type are read

    @property
    def unknown_type(self) -> str | None:
        """The type whose priority and max_attempts must be read to go on."""
        return None if self._pending is None else self._pending.job_type

    def take_later(self) -> list[Draft]:
        """Return the collected drafts with a time or a key, and forget them."""
        later, self._later, self._later_size = self._later, [], 0
        return later

    def records(self) -> Iterable[_Record] | AsyncIterable[_Record]:
        """Yield records for COPY until the stream ends or COPY has to stop."""
        if isinstance(self._drafts, AsyncIterator):
            return self._records_async(self._drafts)
        return self._records(self._drafts)

    def _records(self, drafts: Iterator[Draft]) -> Generator[_Record]:
        try:
            if (pending := self._take_pending()) is not None:
                yield self._record(pending)
            for draft in drafts:
                if not self._can_copy(draft):
                    if self._pending is not None or is_full(self._later, self._later_size):
                        return
                else:
                    yield self._record(draft)
            self.ended = True
        except Exception as error:
            self.error = error
            raise

    async def _records_async(self, drafts: AsyncIterator[Draft]) -> AsyncGenerator[_Record]:
        try:
            if (pending := self._take_pending()) is not None:
                yield self._record(pending)
            async for draft in drafts:
                if not self._can_copy(draft):
                    if self._pending is not None or is_full(self._later, self._later_size):
                        return
                else:
                    yield self._record(draft)
            self.ended = True
        except Exception as error:
            self.error = error
            raise

    def _take_pending(self) -> Draft | None:
        """Return the draft that waited for its defaults, if it can be copied now."""
        pending, self._pending = self._pending, None
        if pending is None or pending.expires is NEVER or not self.defaults[pending.job_type][2]:
            return pending
        self._set_aside(pending)
        return None

    def _can_copy(self, draft: Draft) -> bool:
        """Check a draft; set it aside if it has a time or a key, or needs defaults not yet read."""
        check_size(check_draft(draft), self.limit)
        self.count += 1
        if (
            draft.delay is None
            and draft.run_at is None
            and draft.expires_at is None
            and draft.unique is None
            and draft.key is None
        ):
            never = draft.expires is NEVER
            if never and draft.priority is not None and draft.max_attempts is not None:
                return True
            if never or draft.expires is None:
                defaults = self.defaults.get(draft.job_type)
                if defaults is None:
                    self._pending = draft
                    return False
                if never or not defaults[2]:
                    return True
        self._set_aside(draft)
        return False

    def _set_aside(self, draft: Draft) -> None:
        self._later.append(draft)
        self._later_size += len(draft.data)

    def _record(self, draft: Draft) -> _Record:
        self.ready_types.add(draft.job_type)
        priority, max_attempts = draft.priority, draft.max_attempts
        if priority is None or max_attempts is None:
            default_priority, default_max_attempts, _ = self.defaults[draft.job_type]
            priority = default_priority if priority is None else priority
            max_attempts = default_max_attempts if max_attempts is None else max_attempts
        self.max_attempts = max(self.max_attempts, max_attempts)
        if self.lowest_id is None or self.highest_id is None:
            self.lowest_id = self.highest_id = draft.id
        elif draft.id > self.highest_id:  # nearly always: ids are made in the order of time
            self.highest_id = draft.id
        elif draft.id < self.lowest_id:
            self.lowest_id = draft.id
        record = (draft.id, draft.job_type, draft.data, priority, max_attempts)
        return (*record, draft.trace) if self.traced else record


_NOT_UNIQUE: dict[str, object] = {}


def _unique_fields(unique: Unique) -> dict[str, object]:
    return {
        "unique_key": True if unique.key is None else unique.key,
        "unique_until": unique.until,
        "unique_for": unique.held_for,
        "on_conflict": unique.on_conflict,
    }


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
                "expires_at": "infinity" if draft.expires is NEVER else draft.expires_at,
                "expires": None if draft.expires is NEVER else draft.expires,
                **(_NOT_UNIQUE if draft.unique is None else _unique_fields(draft.unique)),
                "key": draft.key,
            }
            for draft in drafts
        ]
    ).decode()
