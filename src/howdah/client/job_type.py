"""Job type: a registered function, as those see it who enqueue.

`P` is the function's parameters without the context and `R` what it returns, so a wrong
argument is an error in the editor. At run time the payload is checked against the same
annotations, before anything is sent.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Generic, Literal, ParamSpec, Protocol, TypeVar, overload
from uuid import UUID

import msgspec

from howdah import enqueue
from howdah.client.follow import Follower
from howdah.client.handle import Handle
from howdah.errors import BadInput
from howdah.handler import Handler
from howdah.ids import new_id
from howdah.job import Draft
from howdah.store import Store

P = ParamSpec("P")
R = TypeVar("R")


class QueueLike(Protocol):
    """What a job type needs of its queue."""

    @property
    def store(self) -> Store: ...
    @property
    def follower(self) -> Follower: ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What one job may have otherwise than its type; None leaves it as it is."""

    priority: int | None = None
    run_at: datetime | None = None
    delay: timedelta | float | None = None
    max_attempts: int | None = None
    conn: Any = None


class JobType(Generic[P, R]):
    """A registered function, possibly with options for the next jobs of it."""

    def __init__(self, handler: Handler, queue: QueueLike, options: Options | None = None) -> None:
        self.handler = handler
        self._queue = queue
        self._options = options = options or Options()
        rules = handler.rules
        self._blank = enqueue.draft(  # refuses options that make no sense, once for all its jobs
            handler.job_type,
            "{}",
            priority=rules.priority if options.priority is None else options.priority,
            run_at=options.run_at,
            delay=options.delay,
            max_attempts=rules.max_attempts
            if options.max_attempts is None
            else options.max_attempts,
        )

    def __repr__(self) -> str:
        return f"<job type {self.name!r}: {self.handler.where}>"

    @property
    def name(self) -> str:
        return self.handler.job_type

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, to call it without any queue."""
        return self.handler.function

    @property
    def conn(self) -> Any:
        """The caller's own connection, where `options` named one."""
        return self._options.conn

    def on(self, queue: QueueLike) -> JobType[P, R]:
        """Return the same job type, handed over through another queue's connections."""
        return type(self)(self.handler, queue, self._options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, here and now, without any queue."""
        return self.handler.function(*args, **kwargs)

    def options(
        self,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | float | None = None,
        max_attempts: int | None = None,
        conn: Any = None,
    ) -> JobType[P, R]:
        """Return the same job type with options for the jobs enqueued through it.

        Options add up: what is not given here stays as an earlier `options` said it.
        `run_at` is an instant with a time zone, `delay` a length counted by the server.
        `conn` is a connection or session of the caller's own: the job is then part of the
        caller's transaction.
        """
        said = self._options
        if run_at is None and delay is None:  # two ways to say one thing: the last counts
            run_at, delay = said.run_at, said.delay
        given = Options(
            priority=said.priority if priority is None else priority,
            run_at=run_at,
            delay=delay,
            max_attempts=said.max_attempts if max_attempts is None else max_attempts,
            conn=said.conn if conn is None else conn,
        )
        return type(self)(self.handler, self._queue, given)

    def draft(self, *args: P.args, **kwargs: P.kwargs) -> Draft:
        """Make a job without handing it over; it knows its id."""
        return self._draft(self.handler.encode(args, kwargs))

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Hand one job over."""
        made = self._draft(self.handler.encode(args, kwargs))
        await enqueue.enqueue(self._queue.store, made, self._options.conn)
        return Handle(made.id, self._queue.store, self._queue.follower, {self.name: self.handler})

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
        """Hand over a stream of drafts, or of plain mappings of arguments; returns the count.

        All of them or none; the stream is never held as a whole. With `returning="ids"` or
        `"handles"` those are returned, in the order of the stream, and held in memory.
        """
        enqueue.check_returning(returning)
        enqueue.check_stream(drafts)
        made = (
            self._drafts_async(drafts)
            if isinstance(drafts, AsyncIterable)
            else map(self._own, drafts)
        )
        queue, conn = self._queue, self._options.conn
        if returning == "count":
            return await enqueue.enqueue_many(queue.store, made, conn)
        ids = await enqueue.enqueue_many_ids(queue.store, made, conn)
        return (
            ids
            if returning == "ids"
            else [Handle(id, queue.store, queue.follower, {self.name: self.handler}) for id in ids]
        )

    async def _drafts_async(
        self, drafts: AsyncIterable[Draft | Mapping[str, Any]]
    ) -> AsyncIterable[Draft]:
        async for one in drafts:
            yield self._own(one)

    def _own(self, one: Draft | Mapping[str, Any]) -> Draft:
        if isinstance(one, Draft):
            return one
        if isinstance(one, (dict, Mapping)):  # pyright: ignore[reportUnnecessaryIsInstance]
            return self._draft(self.handler.encode((), one))  # dict first: it is found at once
        raise BadInput(
            f"enqueue_many takes drafts or mappings of arguments, not {type(one).__name__}"
        )

    def _draft(self, data: str) -> Draft:
        blank = self._blank
        return Draft(
            id=new_id(),
            job_type=blank.job_type,
            data=data,
            priority=blank.priority,
            max_attempts=blank.max_attempts,
            run_at=blank.run_at,
            delay=blank.delay,
        )
