"""Job type: a registered function, with the methods that enqueue jobs of it.

`P` is the function's parameters without the context, and `R` is what it returns. So a type checker
finds wrong arguments. At run time the payload is checked against the same annotations, before
anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

import msgspec

from howdah import enqueue
from howdah.checks.unique import By, UniqueRule, check_parameter, check_unique
from howdah.client.follow import Follower
from howdah.client.handle import Handle
from howdah.errors import BadInput
from howdah.handler import Handler
from howdah.job import NEVER, Draft, OnConflict, Until
from howdah.store import Store
from howdah.store.ids import new_id

P = ParamSpec("P")
R = TypeVar("R")


class QueueLike(Protocol):
    """What a job type needs of its queue."""

    @property
    def store(self) -> Store: ...
    @property
    def follower(self) -> Follower: ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of single jobs; None means the value of the job type."""

    priority: int | None = None
    run_at: datetime | None = None
    delay: timedelta | float | None = None
    max_attempts: int | None = None
    expires: timedelta | float | None = None
    expires_at: datetime | None = None
    unique: By | None = None
    unique_until: Until | None = None
    unique_for: timedelta | float | None = None
    on_conflict: OnConflict | None = None
    key: object = None
    conn: Any = None


def unique_rule(
    handler: Handler,
    unique: By | None,
    until: Until | None,
    held_for: timedelta | float | None,
    on_conflict: OnConflict | None,
) -> UniqueRule | None:
    """Return the rule of some jobs: that of their type, with their options instead of its own."""
    rule = handler.rules.unique
    if unique is False:
        return None
    if rule is not None:
        if until is None and held_for is None:
            until, held_for = rule.until, rule.held_for
        unique = rule.by if unique is None else unique
        on_conflict = on_conflict or rule.on_conflict
    rule = check_unique(unique, until, held_for, on_conflict)
    if rule is not None:
        check_parameter(rule, handler.fields, handler.job_type)
    return rule


class JobType(Generic[P, R]):
    """A registered function, perhaps with options for its next jobs."""

    def __init__(self, handler: Handler, queue: QueueLike, options: Options | None = None) -> None:
        self.handler = handler
        self._queue = queue
        self._options = options = options or Options()
        rules = handler.rules
        self._unique = unique_rule(
            handler,
            options.unique,
            options.unique_until,
            options.unique_for,
            options.on_conflict,
        )
        self._template = enqueue.draft(  # checks the options once for all jobs
            handler.job_type,
            "{}",
            priority=rules.priority if options.priority is None else options.priority,
            run_at=options.run_at,
            delay=options.delay,
            max_attempts=rules.max_attempts
            if options.max_attempts is None
            else options.max_attempts,
            expires=(rules.expires or NEVER)
            if options.expires is None and options.expires_at is None
            else options.expires,
            expires_at=options.expires_at,
            key=options.key,
        )
        self._makes_keys = options.key is None and rules.keys.key is not None

    def __repr__(self) -> str:
        return f"<job type {self.name!r}: {self.handler.where}>"

    @property
    def name(self) -> str:
        return self.handler.job_type

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, to call it without a queue."""
        return self.handler.function

    @property
    def conn(self) -> Any:
        """The caller's own connection, if `options` has one."""
        return self._options.conn

    def on(self, queue: QueueLike) -> JobType[P, R]:
        """Return the same job type for another queue's connections."""
        return type(self)(self.handler, queue, self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without a queue."""
        return self.handler.function(*args, **kwargs)

    def options(
        self,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | float | None = None,
        max_attempts: int | None = None,
        expires: timedelta | float | None = None,
        expires_at: datetime | None = None,
        unique: By | None = None,
        unique_until: Until | None = None,
        unique_for: timedelta | float | None = None,
        on_conflict: OnConflict | None = None,
        key: object = None,
        conn: Any = None,
    ) -> JobType[P, R]:
        """Return the same job type with options for the jobs enqueued through it.

        Options add up: one that is not given here keeps its value of an earlier `options` call.
        `run_at` is an instant with a time zone; the server counts `delay` from its own clock.
        No attempt begins later than `expires` after the job is due, or after the instant
        `expires_at`; a job that has not started by then is cancelled.
        With `unique`, a job is added only if no job of the type holds its key; `unique_until`,
        `unique_for` and `on_conflict` say how long, and what happens else.
        With `conn`, a connection or session of the caller, the job is part of the caller's
        transaction.
        """
        earlier = self._options
        if run_at is None and delay is None:  # both set the time: the last call counts
            run_at, delay = earlier.run_at, earlier.delay
        if expires is None and expires_at is None:
            expires, expires_at = earlier.expires, earlier.expires_at
        if unique_until is None and unique_for is None:
            unique_until, unique_for = earlier.unique_until, earlier.unique_for
        merged = Options(
            priority=earlier.priority if priority is None else priority,
            run_at=run_at,
            delay=delay,
            max_attempts=earlier.max_attempts if max_attempts is None else max_attempts,
            expires=expires,
            expires_at=expires_at,
            unique=earlier.unique if unique is None else unique,
            unique_until=unique_until,
            unique_for=unique_for,
            on_conflict=earlier.on_conflict if on_conflict is None else on_conflict,
            key=earlier.key if key is None else key,
            conn=earlier.conn if conn is None else conn,
        )
        return type(self)(self.handler, self._queue, merged)

    def draft(self, *args: P.args, **kwargs: P.kwargs) -> Draft:
        """Make a draft, to be enqueued later; it has its id already."""
        return self._draft(self.handler.encode(args, kwargs))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Enqueue one job."""
        draft = self._draft(self.handler.encode(args, kwargs))
        id = await enqueue.enqueue(self._queue.store, draft, self._options.conn)
        return self._handle(id, existed=id != draft.id)

    def _handle(self, id: UUID, *, existed: bool) -> Handle[R]:
        queue = self._queue
        return Handle(id, queue.store, queue.follower, {self.name: self.handler}, existed=existed)

    @overload
    async def enqueue_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any]] | AsyncIterable[Draft | Mapping[str, Any]],
        *,
        returning: Literal["count"] = "count",
    ) -> int: ...
    @overload
    async def enqueue_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any]] | AsyncIterable[Draft | Mapping[str, Any]],
        *,
        returning: Literal["ids"],
    ) -> list[UUID]: ...
    @overload
    async def enqueue_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any]] | AsyncIterable[Draft | Mapping[str, Any]],
        *,
        returning: Literal["handles"],
    ) -> list[Handle[R]]: ...
    async def enqueue_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any]] | AsyncIterable[Draft | Mapping[str, Any]],
        *,
        returning: Literal["count", "ids", "handles"] = "count",
    ) -> int | list[UUID] | list[Handle[R]]:
        """Enqueue a stream of drafts, or of mappings of arguments, all or none; returns the count.

        The stream is never in memory as a whole. With `returning="ids"` or `"handles"` it returns
        those, in the order of the stream; they are kept in memory.
        """
        enqueue.check_returning(returning)
        enqueue.check_stream(drafts)
        stream = (
            self._drafts_async(drafts)
            if isinstance(drafts, AsyncIterable)
            else map(self._as_draft, drafts)
        )
        queue, conn = self._queue, self._options.conn
        if returning == "count":
            return await enqueue.enqueue_many(queue.store, stream, conn)
        ids = await enqueue.enqueue_many_ids(queue.store, stream, conn)
        if returning == "ids":
            return [id for id, _ in ids]
        return [self._handle(id, existed=existed) for id, existed in ids]

    async def _drafts_async(
        self, drafts: AsyncIterable[Draft | Mapping[str, Any]]
    ) -> AsyncIterable[Draft]:
        async for item in drafts:
            yield self._as_draft(item)

    def _as_draft(self, item: Draft | Mapping[str, Any]) -> Draft:
        if isinstance(item, Draft):
            return item
        # dict first: a check for Mapping is slow
        if isinstance(item, (dict, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            return self._draft(self.handler.encode((), item))
        raise BadInput(
            f"enqueue_many takes drafts or mappings of arguments, not {type(item).__name__}"
        )

    def _draft(self, data: str) -> Draft:
        template = self._template
        return Draft(
            id=new_id(),
            job_type=template.job_type,
            data=data,
            priority=template.priority,
            max_attempts=template.max_attempts,
            run_at=template.run_at,
            delay=template.delay,
            expires=template.expires,
            expires_at=template.expires_at,
            unique=None if self._unique is None else self._unique.of(template.job_type, data),
            key=self.handler.key_of(data) if self._makes_keys else template.key,
        )
