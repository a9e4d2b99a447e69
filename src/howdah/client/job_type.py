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
from howdah.client.follow import Follower
from howdah.client.handle import Handle
from howdah.errors import BadInput
from howdah.handler import Handler
from howdah.job import Draft
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
    key: object = None
    conn: Any = None


class JobType(Generic[P, R]):
    """A registered function, perhaps with options for its next jobs."""

    def __init__(self, handler: Handler, queue: QueueLike, options: Options | None = None) -> None:
        self.handler = handler
        self._queue = queue
        self._options = options = options or Options()
        rules = handler.rules
        self._template = enqueue.draft(  # checks the options once for all jobs
            handler.job_type,
            "{}",
            priority=rules.priority if options.priority is None else options.priority,
            run_at=options.run_at,
            delay=options.delay,
            max_attempts=rules.max_attempts
            if options.max_attempts is None
            else options.max_attempts,
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
        key: object = None,
        conn: Any = None,
    ) -> JobType[P, R]:
        """Return the same job type with options for the jobs enqueued through it.

        Options add up: one that is not given here keeps its value of an earlier `options` call.
        `run_at` is an instant with a time zone; the server counts `delay` from its own clock.
        With `conn`, a connection or session of the caller, the job is part of the caller's
        transaction.
        """
        earlier = self._options
        if run_at is None and delay is None:  # both set the time: the last call counts
            run_at, delay = earlier.run_at, earlier.delay
        merged = Options(
            priority=earlier.priority if priority is None else priority,
            run_at=run_at,
            delay=delay,
            max_attempts=earlier.max_attempts if max_attempts is None else max_attempts,
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
        await enqueue.enqueue(self._queue.store, draft, self._options.conn)
        return Handle(draft.id, self._queue.store, self._queue.follower, {self.name: self.handler})

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
        return (
            ids
            if returning == "ids"
            else [Handle(id, queue.store, queue.follower, {self.name: self.handler}) for id in ids]
        )

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
            key=self.handler.key_of(data) if self._makes_keys else template.key,
        )
