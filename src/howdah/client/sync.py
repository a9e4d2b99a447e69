"""The queue without `await`: the same methods, run on a private event-loop thread.

Written from queue.py, registry.py, schedule_registration.py, schedules.py, job_type.py, handle.py
and ../worker.py. Do not edit: `make sync` writes this file, `make check` compares it. portal.py is
the thread. sync_bridge.py runs calls with the caller's own connection in the caller's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from howdah.admit import KeyOf, Rate
from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.checks.unique import By
from howdah.client import portal
from howdah.client.job_type import JobType
from howdah.client.queue import Queue
from howdah.client.registry import ExceptionTypes, Registration
from howdah.client.schedule_registration import ScheduleRegistration
from howdah.client.sync_bridge import SyncBridge
from howdah.errors import BadInput
from howdah.events import Event
from howdah.handler import Backoff, Handler, Run
from howdah.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Draft, Job, Lease, OnConflict, Until
from howdah.observe.key_counts import KeyCounts
from howdah.observe.limits import Limits
from howdah.observe.schedules import Schedule, Upcoming
from howdah.observe.why import Why
from howdah.observe.workers import WorkerHealth
from howdah.run.context import JobContext
from howdah.run.hooks import EndHook, StartHook
from howdah.states import State
from howdah.store.upkeep import Recovered
from howdah.timing import Missed, Overlap
from howdah.waits_for import WaitsFor
from howdah.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class SyncHandle(Generic[R]):
    """A job that was enqueued; `R` is what its function returns."""

    def __init__(self, id: UUID, bridge: SyncBridge, existed: bool = False) -> None:
        self.id: UUID = id
        self.existed: bool = existed
        self._bridge = bridge

    def __repr__(self) -> str:
        return f"<SyncHandle of job {self.id}>"

    def job(self) -> Job:
        """Return the current state of the job; raises JobNotFound once it is pruned."""
        return portal.run(self._bridge.handle(self.id).job())

    def status(self) -> State:
        return portal.run(self._bridge.handle(self.id).status())

    def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait until the job has ended, and return its result in the type of the annotation.

        Raises JobFailed, JobCancelled, JobNotFound, ResultDoesNotFit, or TimeoutError after
        `timeout`; the job itself goes on.
        """
        return portal.run(self._bridge.handle(self.id).result(timeout))

    def events(self, after: int = 0) -> Generator[Event, None, None]:
        """Follow the job: its progress, the events above number `after`, and its end.

        To go on after an interruption, pass the number of the last event as `after`.
        """
        yield from portal.each(self._bridge.handle(self.id).events(after))

    def signal(self, name: str, data: Any = None) -> bool:
        """Send the job a signal; returns whether it waited for it. Raises JobEnded."""
        return portal.run(self._bridge.handle(self.id).signal(name, data))

    def cancel(self, reason: object = "cancelled") -> bool:
        """Cancel the job if it waits or runs; False if it had ended already."""
        return portal.run(self._bridge.handle(self.id).cancel(reason))

    def requeue(self, attempts: int = 1) -> bool:
        """Give a failed or cancelled job more attempts; False if it is neither."""
        return portal.run(self._bridge.handle(self.id).requeue(attempts))


class SyncJobType(Generic[P, R]):
    """A registered function, perhaps with options for its next jobs."""

    def __init__(self, job_type: JobType[P, R], bridge: SyncBridge) -> None:
        self.asynchronous: JobType[P, R] = job_type
        self.handler: Handler = job_type.handler
        self._own = job_type.on(bridge)
        self._bridge = bridge

    def __repr__(self) -> str:
        return repr(self.asynchronous)

    @property
    def name(self) -> str:
        return self._own.name

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself, to call it without a queue."""
        return self._own.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, without a queue."""
        return self.asynchronous(*args, **kwargs)

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
    ) -> SyncJobType[P, R]:
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
        with_options = self.asynchronous.options(
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            expires=expires,
            expires_at=expires_at,
            unique=unique,
            unique_until=unique_until,
            unique_for=unique_for,
            on_conflict=on_conflict,
            key=key,
            conn=conn,
        )
        return type(self)(with_options, self._bridge)

    def draft(self, *args: P.args, **kwargs: P.kwargs) -> Draft:
        """Make a draft, to be enqueued later; it has its id already."""
        return self._own.draft(*args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> SyncHandle[R]:
        """Enqueue one job."""
        handle = self._bridge.run(self._own.enqueue(*args, **kwargs), self.asynchronous.conn)
        return SyncHandle(handle.id, self._bridge, handle.existed)

    @overload
    def enqueue_many(
        self, drafts: Iterable[Draft | Mapping[str, Any]], *, returning: Literal["count"] = "count"
    ) -> int: ...

    @overload
    def enqueue_many(
        self, drafts: Iterable[Draft | Mapping[str, Any]], *, returning: Literal["ids"]
    ) -> list[UUID]: ...

    @overload
    def enqueue_many(
        self, drafts: Iterable[Draft | Mapping[str, Any]], *, returning: Literal["handles"]
    ) -> list[SyncHandle[R]]: ...

    def enqueue_many(
        self,
        drafts: Iterable[Draft | Mapping[str, Any]],
        *,
        returning: Literal["count", "ids", "handles"] = "count",
    ) -> int | list[UUID] | list[SyncHandle[R]]:
        """Enqueue a stream of drafts, or of mappings of arguments, all or none; returns the count.

        The stream is never in memory as a whole. With `returning="ids"` or `"handles"` it returns
        those, in the order of the stream; they are kept in memory.
        """
        enqueued: Any = self._bridge.feed(
            drafts,
            lambda stream: self._own.enqueue_many(stream, returning=returning),
            self.asynchronous.conn,
        )
        if returning == "handles":
            return [SyncHandle(each.id, self._bridge, each.existed) for each in enqueued]
        return enqueued


class SyncRegistration:
    """The decorator that `@queue.job(…)` returns."""

    def __init__(self, registration: Registration, bridge: SyncBridge) -> None:
        self._registration = registration
        self._bridge = bridge

    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]]
    ) -> SyncJobType[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> SyncJobType[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[JobContext, P], R]) -> SyncJobType[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> SyncJobType[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> SyncJobType[..., Any]:
        own: Any = getattr(function, "asynchronous", function)  # of a SyncJobType
        return SyncJobType(self._registration(own), self._bridge)


class SyncScheduleRegistration:
    """The decorator that `@queue.cron(…)` returns."""

    def __init__(self, registration: ScheduleRegistration, bridge: SyncBridge) -> None:
        self._registration = registration
        self._bridge = bridge

    @overload
    def __call__(self, function: SyncJobType[P, R]) -> SyncJobType[P, R]: ...

    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]]
    ) -> SyncJobType[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, Awaitable[R]]) -> SyncJobType[P, R]: ...

    @overload
    def __call__(self, function: Callable[Concatenate[JobContext, P], R]) -> SyncJobType[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> SyncJobType[P, R]: ...

    def __call__(self, function: Callable[..., Any]) -> SyncJobType[..., Any]:
        own: Any = getattr(function, "asynchronous", function)  # of a SyncJobType
        return SyncJobType(self._registration(own), self._bridge)


class SyncSchedules:
    """The schedules of one queue."""

    def __init__(self, bridge: SyncBridge) -> None:
        self._bridge = bridge

    def get(self, name: str) -> Schedule:
        """Return one schedule; raises BadInput if there is none of this name."""
        return portal.run(self._bridge.queue.schedules.get(name))

    def upcoming(self, count: int = 10) -> Sequence[Upcoming]:
        """Return the next firings of all schedules, the next one first."""
        return portal.run(self._bridge.queue.schedules.upcoming(count))

    def set(
        self,
        name: str,
        draft: Draft,
        *,
        cron: str | None = None,
        every: timedelta | float | None = None,
        tz: str = "UTC",
        missed: Missed = "last",
        overlap: Overlap = "allow",
    ) -> Schedule:
        """Make a schedule, or change it as a whole: each firing enqueues a job like the draft.

        The draft is of `job_type.draft(…)`, with the options of its jobs, or of `queue.draft`.
        `cron` is an expression in the time zone `tz`, `every` the time between two firings; the
        first one is so long from now. With `missed`, firings that no worker could do within a
        minute enqueue nothing, one job for the last of them, or a job for all, at most the last
        100. With `overlap="skip"` a firing enqueues nothing while the job of the firing before has
        not ended. Code does not touch the schedule any more, also one that code has declared.
        """
        return portal.run(
            self._bridge.queue.schedules.set(
                name, draft, cron=cron, every=every, tz=tz, missed=missed, overlap=overlap
            )
        )

    def pause(self, name: str) -> bool:
        """Let a schedule not fire, until somebody resumes it; returns False if it was paused."""
        return portal.run(self._bridge.queue.schedules.pause(name))

    def resume(self, name: str) -> bool:
        """Let a schedule fire again, from now on; returns whether it was paused.

        The firings of the time in which it was paused are not made up for.
        """
        return portal.run(self._bridge.queue.schedules.resume(name))

    def remove(self, name: str) -> bool:
        """Remove a schedule, and keep its jobs; returns False if there is none.

        One that code declares comes back when the next worker starts: pause it instead.
        """
        return portal.run(self._bridge.queue.schedules.remove(name))

    def run_now(self, name: str) -> SyncHandle[Any]:
        """Enqueue a job of a schedule at once; its next firing stays."""
        handle = portal.run(self._bridge.queue.schedules.run_now(name))
        return SyncHandle(handle.id, self._bridge, handle.existed)

    def list(self) -> Sequence[Schedule]:
        """Return all schedules by name."""
        return portal.run(self._bridge.queue.schedules.list())


class SyncWorker:
    """Runs the jobs of one queue, on the portal's thread, until it is stopped."""

    def __init__(self, worker: Worker) -> None:
        self.asynchronous: Worker = worker
        self.id: str = worker.id

    def __enter__(self) -> Self:
        portal.run(self.asynchronous.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        portal.run(self.asynchronous.__aexit__(kind, error, trace))

    def start(self) -> None:
        """Start to work, as soon as the database is there; returns after the first beat."""
        portal.run(self.asynchronous.start())

    def run(self) -> None:
        """Work until `shut_down` is called, or until an error that no retry can fix."""
        portal.run(self.asynchronous.run())

    def stopping(self) -> None:
        """Wait until `shut_down` is called, or until an error that no retry can fix."""
        portal.run(self.asynchronous.stopping())

    def run_until_idle(self) -> None:
        """Work until nothing is left that could be done now: for scripts and tests."""
        portal.run(self.asynchronous.run_until_idle())

    @property
    def free_slots(self) -> int:
        """How many more jobs this worker could start now."""
        return self.asynchronous.free_slots

    def types_at_work(self) -> str:
        """Name the types of the running jobs, for the log. Safe in any thread."""
        return self.asynchronous.types_at_work()

    @property
    def beaten_at(self) -> float | None:
        """When its last beat reached the database, by time.monotonic(); None before the first."""
        return self.asynchronous.beaten_at

    @property
    def leaving(self) -> bool:
        """Whether it was told to stop."""
        return self.asynchronous.leaving

    def shut_down(self) -> None:
        """Ask the worker to stop; a second call asks it to stop at once. For signal handlers."""
        portal.call_soon(self.asynchronous.shut_down)

    def stop(self) -> None:
        """Claim no more, release what has not started, let the rest end within the grace."""
        portal.run(self.asynchronous.stop())


class SyncQueue:
    """A job queue in one PostgreSQL database.

    The database is `dsn`, else HOWDAH_DSN, else DATABASE_URL, else a private PostgreSQL that is
    started for you. A pooler such as PgBouncer is detected, unless `pgbouncer` says whether there
    is one. Behind a pooler workers poll, unless a direct `listen_dsn` (HOWDAH_LISTEN_DSN) is given.
    A call that gets no answer within `call_timeout` raises Unreachable, and its connection is
    closed.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        listen_dsn: str | None = None,
        pgbouncer: bool | None = None,
        connections: int = 8,
        call_timeout: timedelta | float = timedelta(seconds=30),
    ) -> None:
        self._begin(
            Queue(
                dsn,
                listen_dsn=listen_dsn,
                pgbouncer=pgbouncer,
                connections=connections,
                call_timeout=call_timeout,
            )
        )

    @classmethod
    def of(cls, queue: Queue) -> Self:
        """Make the sync form of a queue: the same functions, and its own connections."""
        sync_queue = cls.__new__(cls)
        sync_queue._begin(queue)
        return sync_queue

    def _begin(self, queue: Queue) -> None:
        self.asynchronous: Queue = queue
        self._bridge = SyncBridge(queue)

    def job_type(self, job_type: JobType[P, R]) -> SyncJobType[P, R]:
        """Return the sync form of a job type that was registered with the async queue."""
        if self.handlers.get(job_type.name) is not job_type.handler:
            raise BadInput(
                f"{job_type!r} was registered with another queue: register it with this one"
            )
        return SyncJobType(job_type, self._bridge)

    def __repr__(self) -> str:
        return f"<SyncQueue at {self._bridge.store.shown_dsn}>"

    def __enter__(self) -> Self:
        portal.run(self._bridge.queue.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        portal.run(self._bridge.queue.__aexit__(kind, error, trace))

    def open(self) -> None:
        """Connect; any call on a queue that is not open does it, too."""
        portal.run(self._bridge.queue.open())

    def close(self) -> None:
        """Close every connection, and release the embedded PostgreSQL."""
        portal.run(self._bridge.queue.close())

    def install(self) -> bool:
        """Install or upgrade the schema; returns whether anything was changed."""
        return portal.run(self._bridge.queue.install())

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The registered functions by job type."""
        return self._bridge.queue.handlers

    @overload
    def job(
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]], /
    ) -> SyncJobType[P, R]: ...

    @overload
    def job(self, function: Callable[P, Awaitable[R]], /) -> SyncJobType[P, R]: ...

    @overload
    def job(self, function: Callable[Concatenate[JobContext, P], R], /) -> SyncJobType[P, R]: ...

    @overload
    def job(self, function: Callable[P, R], /) -> SyncJobType[P, R]: ...

    @overload
    def job(
        self,
        /,
        *,
        name: str | None = None,
        priority: int = DEFAULT_PRIORITY,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        timeout: timedelta | float | None = None,
        run: Run | None = None,
        backoff: Backoff | timedelta | float | None = None,
        retry_on: ExceptionTypes = Exception,
        fail_on: ExceptionTypes = (),
        label: str | None = None,
        queue: str = DEFAULT_QUEUE,
        expires: timedelta | float | None = None,
        unique: By | None = None,
        unique_until: Until | None = None,
        unique_for: timedelta | float | None = None,
        on_conflict: OnConflict | None = None,
        key: KeyOf | None = None,
        at_once: int | None = None,
        ordered: bool = False,
        fair: bool = False,
        limit: str | None = None,
    ) -> SyncRegistration: ...

    def job(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        priority: int = DEFAULT_PRIORITY,
        max_attempts: int = DEFAULT_MAX_ATTEMPTS,
        timeout: timedelta | float | None = None,
        run: Run | None = None,
        backoff: Backoff | timedelta | float | None = None,
        retry_on: ExceptionTypes = Exception,
        fail_on: ExceptionTypes = (),
        label: str | None = None,
        queue: str = DEFAULT_QUEUE,
        expires: timedelta | float | None = None,
        unique: By | None = None,
        unique_until: Until | None = None,
        unique_for: timedelta | float | None = None,
        on_conflict: OnConflict | None = None,
        key: KeyOf | None = None,
        at_once: int | None = None,
        ordered: bool = False,
        fair: bool = False,
        limit: str | None = None,
    ) -> SyncJobType[..., Any] | SyncRegistration:
        """Register a function as a type of job, bare or with options.

        `key` is the name of a parameter, or a function of the payload. No more than `at_once` jobs
        with the same key run at once; with `ordered`, one after the other in the order of
        enqueueing. With `fair` there is no such limit, but keys take turns: a key with many jobs
        does not keep others waiting. `limit` names a limit, see `queue.limit`.
        """
        registered = self.asynchronous.job(
            name=name,
            priority=priority,
            max_attempts=max_attempts,
            timeout=timeout,
            run=run,
            backoff=backoff,
            retry_on=retry_on,
            fail_on=fail_on,
            label=label,
            queue=queue,
            expires=expires,
            unique=unique,
            unique_until=unique_until,
            unique_for=unique_for,
            on_conflict=on_conflict,
            key=key,
            at_once=at_once,
            ordered=ordered,
            fair=fair,
            limit=limit,
        )
        registration = SyncRegistration(registered, self._bridge)
        return registration if function is None else registration(function)

    def limit(
        self,
        name: str,
        *,
        at_once: int | None = None,
        rate: Rate | None = None,
        per_key: bool = False,
    ) -> None:
        """Define a limit that job types share with `@queue.job(limit=name)`.

        `at_once` is how many of their jobs run at once, `rate` how many start per time. With
        `per_key` each concurrency key has the whole limit for itself. Workers register it when they
        start.
        """
        self._bridge.queue.limit(name, at_once=at_once, rate=rate, per_key=per_key)

    def cron(
        self,
        expression: str,
        /,
        *,
        tz: str = "UTC",
        name: str | None = None,
        data: Mapping[str, Any] | None = None,
        missed: Missed = "last",
        overlap: Overlap = "allow",
    ) -> SyncScheduleRegistration:
        """Enqueue a job of this type at the times of a cron expression, in the time zone `tz`.

        Above or below `@queue.job`; a function without it becomes a job type, too. Workers write
        the schedule when they start. `data` has the arguments of its jobs, `name` is by default
        that of the type; `missed` and `overlap` are as in `schedules.set`.
        """
        return SyncScheduleRegistration(
            self.asynchronous.cron(
                expression, tz=tz, name=name, data=data, missed=missed, overlap=overlap
            ),
            self._bridge,
        )

    def every(
        self,
        interval: timedelta | float,
        /,
        *,
        name: str | None = None,
        data: Mapping[str, Any] | None = None,
        missed: Missed = "last",
        overlap: Overlap = "allow",
    ) -> SyncScheduleRegistration:
        """Enqueue a job of this type every so often; the first one so long after the start.

        The same as `cron` else.
        """
        return SyncScheduleRegistration(
            self.asynchronous.every(interval, name=name, data=data, missed=missed, overlap=overlap),
            self._bridge,
        )

    @property
    def schedules(self) -> SyncSchedules:
        """The schedules, to list, set, pause, resume, remove and run them."""
        return SyncSchedules(self._bridge)

    def on_start(self, hook: StartHook) -> StartHook:
        """Call this function when an attempt starts: `@queue.on_start`, sync or async."""
        return self._bridge.queue.on_start(hook)

    def on_end(self, hook: EndHook) -> EndHook:
        """Call this function when an attempt has ended in any way."""
        return self._bridge.queue.on_end(hook)

    def on_retry(self, hook: EndHook) -> EndHook:
        """Call this function when an attempt has failed and the job will be tried again."""
        return self._bridge.queue.on_retry(hook)

    def on_failure(self, hook: EndHook) -> EndHook:
        """Call this function when a job has failed and is not retried."""
        return self._bridge.queue.on_failure(hook)

    def draft(
        self,
        job_type: str,
        data: Mapping[str, Any] | None = None,
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
    ) -> Draft:
        """Make a draft by the name of its type; checked if the function is registered here."""
        return self._bridge.queue.draft(
            job_type,
            data,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            expires=expires,
            expires_at=expires_at,
            unique=unique,
            unique_until=unique_until,
            unique_for=unique_for,
            on_conflict=on_conflict,
            key=key,
        )

    def enqueue(
        self,
        job_type: str,
        data: Mapping[str, Any] | None = None,
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
    ) -> SyncHandle[Any]:
        """Enqueue one job by the name of its type; its function may be in another program."""
        handle = self._bridge.run(
            self._bridge.queue.enqueue(
                job_type,
                data,
                priority=priority,
                run_at=run_at,
                delay=delay,
                max_attempts=max_attempts,
                expires=expires,
                expires_at=expires_at,
                unique=unique,
                unique_until=unique_until,
                unique_for=unique_for,
                on_conflict=on_conflict,
                key=key,
                conn=conn,
            ),
            conn,
        )
        return SyncHandle(handle.id, self._bridge, handle.existed)

    @overload
    def enqueue_many(
        self, drafts: Iterable[Draft], *, conn: Any = None, returning: Literal["count"] = "count"
    ) -> int: ...

    @overload
    def enqueue_many(
        self, drafts: Iterable[Draft], *, conn: Any = None, returning: Literal["ids"]
    ) -> list[UUID]: ...

    @overload
    def enqueue_many(
        self, drafts: Iterable[Draft], *, conn: Any = None, returning: Literal["handles"]
    ) -> list[SyncHandle[Any]]: ...

    def enqueue_many(
        self,
        drafts: Iterable[Draft],
        *,
        conn: Any = None,
        returning: Literal["count", "ids", "handles"] = "count",
    ) -> int | list[UUID] | list[SyncHandle[Any]]:
        """Enqueue a stream of drafts of any types, all or none; returns the count.

        With `returning="ids"` or `"handles"` it returns those, in the order of the stream. They
        are kept in memory; the stream itself is not.
        """
        enqueued: Any = self._bridge.feed(
            drafts,
            lambda stream: self._bridge.queue.enqueue_many(stream, conn=conn, returning=returning),
            conn,
        )
        if returning == "handles":
            return [SyncHandle(each.id, self._bridge, each.existed) for each in enqueued]
        return enqueued

    def worker(
        self,
        *,
        concurrency: int = 100,
        job_types: Iterable[str] | str | None = None,
        queues: Iterable[str] | str | None = None,
        batch_size: int = 2000,
        threads: int = 16,
        processes: int | None = None,
        poll: timedelta | float = timedelta(seconds=1),
        grace: timedelta | float = timedelta(seconds=30),
        silent_after: timedelta | float = timedelta(seconds=15),
        stale_after: timedelta | float = timedelta(minutes=5),
        upkeep_every: timedelta | float = timedelta(seconds=1),
        worker_id: str | None = None,
        log_jobs: bool = False,
    ) -> SyncWorker:
        """Make a worker: `with queue.worker(): …`, or `queue.worker().run()`.

        It runs all registered types, or those in `job_types`, or those of the named `queues`.
        """
        return SyncWorker(
            self._bridge.queue.worker(
                concurrency=concurrency,
                job_types=job_types,
                queues=queues,
                batch_size=batch_size,
                threads=threads,
                processes=processes,
                poll=poll,
                grace=grace,
                silent_after=silent_after,
                stale_after=stale_after,
                upkeep_every=upkeep_every,
                worker_id=worker_id,
                log_jobs=log_jobs,
            )
        )

    def claim(
        self, job_types: Iterable[str] | str, batch_size: int = 10, *, worker_id: str
    ) -> list[Job]:
        """Claim jobs for your own loop; settle each with the returned job, which has the lease."""
        return portal.run(self._bridge.queue.claim(job_types, batch_size, worker_id=worker_id))

    def complete(self, job: Job | Lease, result: Any = None) -> None:
        """Complete an attempt; raises StaleLease if it is no longer yours."""
        portal.run(self._bridge.queue.complete(job, result))

    def complete_many(
        self, jobs: Sequence[Job | Lease] | Job | Lease, results: Sequence[Any] | None = None
    ) -> set[UUID]:
        """Complete attempts; returns the ids of those that were still yours."""
        return portal.run(self._bridge.queue.complete_many(jobs, results))

    def fail(
        self, job: Job | Lease, error: object, *, retry: bool = True, delay: timedelta | float = 0
    ) -> State:
        """Report that an attempt failed: the job is retried if attempts are left, else it fails.

        The error is text, an exception or any object, stored as text. Returns the new state;
        raises StaleLease if the attempt is no longer yours.
        """
        return portal.run(self._bridge.queue.fail(job, error, retry=retry, delay=delay))

    def fail_many(
        self,
        jobs: Sequence[Job | Lease],
        errors: Sequence[object],
        *,
        retry: bool = True,
        delay: timedelta | float = 0,
    ) -> dict[UUID, State]:
        """Report that attempts failed; returns the new state of each that was still yours."""
        return portal.run(self._bridge.queue.fail_many(jobs, errors, retry=retry, delay=delay))

    def release(self, jobs: Sequence[Job | Lease] | Job | Lease) -> set[UUID]:
        """Release jobs that were not run; the attempt does not count. Returns those still yours."""
        return portal.run(self._bridge.queue.release(jobs))

    def recover_stale_jobs(
        self, timeout: timedelta | float = timedelta(minutes=5)
    ) -> list[Recovered]:
        """Take jobs from silent workers; `timeout` is for workers that never sent a beat."""
        return portal.run(self._bridge.queue.recover_stale_jobs(timeout))

    def promote(self) -> int:
        """Put due jobs into the line; workers do this by themselves."""
        return portal.run(self._bridge.queue.promote())

    def prune(self, keep: timedelta | float | None = None) -> list[str]:
        """Delete finished jobs and events older than `keep`; workers do this by themselves."""
        return portal.run(self._bridge.queue.prune(keep))

    def handle(self, id: UUID | str) -> SyncHandle[Any]:
        """Make a handle of a job from its id.

        Its result is decoded if the job's type is registered with this queue, else plain JSON.
        """
        handle = self._bridge.queue.handle(id)
        return SyncHandle(handle.id, self._bridge, handle.existed)

    def get(self, id: UUID | str) -> Job:
        """Return the current state of one job; raises JobNotFound."""
        return portal.run(self._bridge.queue.get(id))

    def jobs(
        self,
        *,
        status: State | str | Sequence[State | str] = (),
        job_type: str | Sequence[str] = (),
        queue: str | Sequence[str] = (),
        worker_id: str | None = None,
        key: str | None = None,
        limited_by: str | None = None,
        waits_for: WaitsFor | str | Sequence[WaitsFor | str] = (),
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """List jobs, newest first; `before` is the last id of the previous page.

        `key` is a concurrency key, `limited_by` the name of a limit. With a `job_type` and a
        `key`, and with `limited_by`, waiting jobs are found by an index. Every other filter reads
        jobs from the newest on, until `limit` of them match.
        """
        return portal.run(
            self._bridge.queue.jobs(
                status=status,
                job_type=job_type,
                queue=queue,
                worker_id=worker_id,
                key=key,
                limited_by=limited_by,
                waits_for=waits_for,
                before=before,
                limit=limit,
            )
        )

    def counts(self) -> dict[str, dict[State, int]]:
        """Count jobs by type and state, without scanning the history."""
        return portal.run(self._bridge.queue.counts())

    def key_counts(self, job_type: str, limit: int = 20) -> KeyCounts:
        """Count the jobs of a type by concurrency key: how many hold a slot, how many wait.

        Returns the keys for which most jobs wait. The cost is bounded: of a type with many keys
        only some are compared, and `exhausted` says so.
        """
        return portal.run(self._bridge.queue.key_counts(job_type, limit))

    def workers(self) -> list[WorkerHealth]:
        """List the workers, alive or silent."""
        return portal.run(self._bridge.queue.workers())

    def cancel(
        self, ids: Iterable[UUID | str] | UUID | str, reason: object = "cancelled"
    ) -> set[UUID]:
        """Cancel jobs that wait or run; returns those that had not ended yet."""
        return portal.run(self._bridge.queue.cancel(ids, reason))

    def requeue(self, ids: Iterable[UUID | str] | UUID | str, attempts: int = 1) -> set[UUID]:
        """Give failed or cancelled jobs more attempts; returns the ids that were requeued."""
        return portal.run(self._bridge.queue.requeue(ids, attempts))

    def signal(self, id: UUID | str, name: str, data: Any = None) -> bool:
        """Send a signal to a job; returns whether it waited for it. Else the signal is kept.

        Raises JobNotFound, and JobEnded for a job that has ended.
        """
        return portal.run(self._bridge.queue.signal(id, name, data))

    def why(self, id: UUID | str) -> Why:
        """Explain why a job is in its state; raises JobNotFound."""
        return portal.run(self._bridge.queue.why(id))

    def pause(self, job_type: str, reason: str | None = None) -> bool:
        """Stop workers from claiming jobs of this type; returns False if it was paused already."""
        return portal.run(self._bridge.queue.pause(job_type, reason))

    def resume(self, job_type: str) -> bool:
        """Let workers claim jobs of a paused type again; returns whether it was paused."""
        return portal.run(self._bridge.queue.resume(job_type))

    def set_limit(
        self,
        name: str,
        *,
        at_once: int | None = None,
        rate: Rate | None = None,
        per_key: bool = False,
    ) -> None:
        """Make or change a named limit now; it stays until the code of a worker says another.

        `limit` declares one in code.
        """
        portal.run(self._bridge.queue.set_limit(name, at_once=at_once, rate=rate, per_key=per_key))

    def remove_limit(self, name: str) -> bool:
        """Remove a named limit, also from the rules of types; returns False if there is none."""
        return portal.run(self._bridge.queue.remove_limit(name))

    def set_type_limit(
        self,
        job_type: str,
        *,
        at_once: int | None = None,
        ordered: bool = False,
        fair: bool = False,
        limit: str | None = None,
    ) -> None:
        """Set the rule of a job type now: as the same options of `job` do.

        Without `at_once` a key has any number of slots.
        """
        portal.run(
            self._bridge.queue.set_type_limit(
                job_type, at_once=at_once, ordered=ordered, fair=fair, limit=limit
            )
        )

    def clear_type_limit(self, job_type: str) -> bool:
        """Remove the rule of a job type: a key has one slot; returns False if it has none."""
        return portal.run(self._bridge.queue.clear_type_limit(job_type))

    def limits(self) -> Limits:
        """Return the named limits and the rules of types, and how they are used now."""
        return portal.run(self._bridge.queue.limits())
