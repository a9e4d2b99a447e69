"""The queue without `await`: the same verbs, run on a private event-loop thread.

Written from queue.py, registry.py, job_type.py, handle.py and ../worker.py. Do not edit:
`make sync` writes this file, `make check` compares it. It calls portal.py, the
thread, and sync_bridge.py, which keeps work on the caller's own connection in the caller's thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from howdah.client import portal
from howdah.client.job_type import JobType
from howdah.client.queue import Queue
from howdah.client.registry import ExceptionTypes, Registration
from howdah.client.sync_bridge import SyncBridge
from howdah.errors import BadInput
from howdah.events import Event
from howdah.handler import Backoff, Handler, Run
from howdah.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Draft, Job, Lease
from howdah.observe.why import Why
from howdah.run.context import JobContext
from howdah.run.hooks import EndHook, StartHook
from howdah.states import State
from howdah.store.ask import WorkerHealth
from howdah.store.upkeep import Recovered
from howdah.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class SyncHandle(Generic[R]):
    """A job that was handed over; `R` is what its function returns."""

    def __init__(self, id: UUID, bridge: SyncBridge) -> None:
        self.id: UUID = id
        self._bridge = bridge

    def __repr__(self) -> str:
        return f"<SyncHandle of job {self.id}>"

    def job(self) -> Job:
        """Return the job as it stands; raises JobNotFound once it is pruned."""
        return portal.run(self._bridge.handle(self.id).job())

    def status(self) -> State:
        return portal.run(self._bridge.handle(self.id).status())

    def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the end and return what the function returned, as its annotation says.

        Raises JobFailed, JobCancelled, JobNotFound, ResultDoesNotFit, or TimeoutError when waiting
        took longer than `timeout`; the job itself goes on.
        """
        return portal.run(self._bridge.handle(self.id).result(timeout))

    def events(self, after: int = 0) -> Generator[Event, None, None]:
        """Follow the job: its progress, the events above number `after`, and its end.

        A follower that was cut off goes on with `after` = the number of the last event it saw.
        """
        yield from portal.each(self._bridge.handle(self.id).events(after))

    def cancel(self, reason: object = "cancelled") -> bool:
        """Cancel the job, waiting or at work; False when it had already ended."""
        return portal.run(self._bridge.handle(self.id).cancel(reason))

    def requeue(self, attempts: int = 1) -> bool:
        """Give a failed or cancelled job more attempts; False when it is neither."""
        return portal.run(self._bridge.handle(self.id).requeue(attempts))


class SyncJobType(Generic[P, R]):
    """A registered function, possibly with options for the next jobs of it."""

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
        """The function itself, to call it without any queue."""
        return self._own.function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, here and now, without any queue."""
        return self.asynchronous(*args, **kwargs)

    def options(
        self,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | float | None = None,
        max_attempts: int | None = None,
        conn: Any = None,
    ) -> SyncJobType[P, R]:
        """Return the same job type with options for the jobs enqueued through it.

        Options add up: what is not given here stays as an earlier `options` said it.
        `run_at` is an instant with a time zone, `delay` a length counted by the server.
        `conn` is a connection or session of the caller's own: the job is then part of the
        caller's transaction.
        """
        given = self.asynchronous.options(
            priority=priority, run_at=run_at, delay=delay, max_attempts=max_attempts, conn=conn
        )
        return type(self)(given, self._bridge)

    def draft(self, *args: P.args, **kwargs: P.kwargs) -> Draft:
        """Make a job without handing it over; it knows its id."""
        return self._own.draft(*args, **kwargs)

    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> SyncHandle[R]:
        """Hand one job over."""
        return SyncHandle(
            self._bridge.run(self._own.enqueue(*args, **kwargs), self.asynchronous.conn).id,
            self._bridge,
        )

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
        """Hand over a stream of drafts, or of plain mappings of arguments; returns the count.

        All of them or none; the stream is never held as a whole. With `returning="ids"` or
        `"handles"` those are returned, in the order of the stream, and held in memory.
        """
        found: Any = self._bridge.feed(
            drafts,
            lambda stream: self._own.enqueue_many(stream, returning=returning),
            self.asynchronous.conn,
        )
        if returning == "handles":
            return [SyncHandle(one.id, self._bridge) for one in found]
        return found


class SyncRegistration:
    """What `@queue.job(…)` returns: the decorator proper."""

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
        return SyncJobType(self._registration(function), self._bridge)


class SyncWorker:
    """Works on the jobs of one queue, on the portal's thread, until it is stopped."""

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
        """Begin to work, as soon as the database is there; returns once the worker has beaten."""
        portal.run(self.asynchronous.start())

    def run(self) -> None:
        """Work until `shut_down` is called, or something is wrong for good."""
        portal.run(self.asynchronous.run())

    def stopping(self) -> None:
        """Wait, once started, for `shut_down`, or for something that is wrong for good."""
        portal.run(self.asynchronous.stopping())

    def run_until_idle(self) -> None:
        """Work until nothing is left that could be done now: for scripts and tests."""
        portal.run(self.asynchronous.run_until_idle())

    @property
    def free_slots(self) -> int:
        """How many more jobs this worker could start now."""
        return self.asynchronous.free_slots

    def types_at_work(self) -> str:
        """Name the types of the jobs at work, for the log. May be called in any thread."""
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
        """Ask the worker to stop; asked again, to stop at once. For signal handlers."""
        portal.call_soon(self.asynchronous.shut_down)

    def stop(self) -> None:
        """Claim no more, hand back what has not started, let the rest end within the grace."""
        portal.run(self.asynchronous.stop())


class SyncQueue:
    """A job queue in one PostgreSQL database.

    The database is `dsn`, else HOWDAH_DSN, else DATABASE_URL, else a private PostgreSQL that is
    started for you. A pooler such as PgBouncer before it is noticed, unless `pgbouncer` says; to
    be told of new jobs at once behind one, give a direct `listen_dsn` (HOWDAH_LISTEN_DSN):
    without it workers poll. A call that gets no answer within `call_timeout` fails as Unreachable,
    and its connection is given up.
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
        """Make the sync form of a queue: its functions, and connections of its own."""
        sync_queue = cls.__new__(cls)
        sync_queue._begin(queue)
        return sync_queue

    def _begin(self, queue: Queue) -> None:
        self.asynchronous: Queue = queue
        self._bridge = SyncBridge(queue)

    def job_type(self, job_type: JobType[P, R]) -> SyncJobType[P, R]:
        """Return the sync form of a job type that was registered with the async queue."""
        if self.handlers.get(job_type.name) is not job_type.handler:
            raise BadInput(f"{job_type!r} was registered with another queue")
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
        """Connect; any call on a queue that is not open does it too."""
        portal.run(self._bridge.queue.open())

    def close(self) -> None:
        """Let go of every connection, and of the embedded PostgreSQL."""
        portal.run(self._bridge.queue.close())

    def install(self) -> bool:
        """Make or upgrade the schema; returns whether anything had to be done."""
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
    ) -> SyncJobType[..., Any] | SyncRegistration:
        """Register a function as a type of job, bare or with options."""
        registered = self.asynchronous.job(
            name=name,
            priority=priority,
            max_attempts=max_attempts,
            timeout=timeout,
            run=run,
            backoff=backoff,
            retry_on=retry_on,
            fail_on=fail_on,
        )
        registration = SyncRegistration(registered, self._bridge)
        return registration if function is None else registration(function)

    def on_start(self, hook: StartHook) -> StartHook:
        """Call this function when an attempt begins: `@queue.on_start`, sync or async."""
        return self._bridge.queue.on_start(hook)

    def on_end(self, hook: EndHook) -> EndHook:
        """Call this function when an attempt has ended, however."""
        return self._bridge.queue.on_end(hook)

    def on_retry(self, hook: EndHook) -> EndHook:
        """Call this function when an attempt has failed and the job will be tried again."""
        return self._bridge.queue.on_retry(hook)

    def on_failure(self, hook: EndHook) -> EndHook:
        """Call this function when a job has failed for good."""
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
    ) -> Draft:
        """Make a job by the name of its type; checked against the function where it is known."""
        return self._bridge.queue.draft(
            job_type, data, priority=priority, run_at=run_at, delay=delay, max_attempts=max_attempts
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
        conn: Any = None,
    ) -> SyncHandle[Any]:
        """Hand over one job by the name of its type, whoever knows the function."""
        return SyncHandle(
            self._bridge.run(
                self._bridge.queue.enqueue(
                    job_type,
                    data,
                    priority=priority,
                    run_at=run_at,
                    delay=delay,
                    max_attempts=max_attempts,
                    conn=conn,
                ),
                conn,
            ).id,
            self._bridge,
        )

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
        """Hand over a stream of drafts of any types: all of them or none; returns the count.

        With `returning="ids"` or `"handles"` those, in the order of the stream: they are held in
        memory, the stream itself never is.
        """
        found: Any = self._bridge.feed(
            drafts,
            lambda stream: self._bridge.queue.enqueue_many(stream, conn=conn, returning=returning),
            conn,
        )
        if returning == "handles":
            return [SyncHandle(one.id, self._bridge) for one in found]
        return found

    def worker(
        self,
        *,
        concurrency: int = 100,
        job_types: Iterable[str] | str | None = None,
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
        """Make a worker: `with queue.worker(): …`, or `queue.worker().run()`."""
        return SyncWorker(
            self._bridge.queue.worker(
                concurrency=concurrency,
                job_types=job_types,
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
        """Claim jobs for a loop of your own; settle each with its job, which is its lease."""
        return portal.run(self._bridge.queue.claim(job_types, batch_size, worker_id=worker_id))

    def complete(self, job: Job | Lease, result: Any = None) -> None:
        """Say that an attempt ended well; raises StaleLease when it is no longer yours."""
        portal.run(self._bridge.queue.complete(job, result))

    def complete_many(
        self, jobs: Sequence[Job | Lease] | Job | Lease, results: Sequence[Any] | None = None
    ) -> set[UUID]:
        """Say that attempts ended well; returns the ids that were still yours."""
        return portal.run(self._bridge.queue.complete_many(jobs, results))

    def fail(
        self, job: Job | Lease, error: object, *, retry: bool = True, delay: timedelta | float = 0
    ) -> State:
        """Say that an attempt failed: it is retried while attempts are left, then it has failed.

        The error is text, an exception or any object, kept as text. Returns where it went;
        raises StaleLease when it is no longer yours.
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
        """Say that attempts failed; returns where each that was still yours went."""
        return portal.run(self._bridge.queue.fail_many(jobs, errors, retry=retry, delay=delay))

    def release(self, jobs: Sequence[Job | Lease] | Job | Lease) -> set[UUID]:
        """Hand jobs back unrun, the attempt not counted; returns the ids that were yours."""
        return portal.run(self._bridge.queue.release(jobs))

    def recover_stale_jobs(
        self, timeout: timedelta | float = timedelta(minutes=5)
    ) -> list[Recovered]:
        """Take jobs from workers that fell silent; `timeout` is for those that never beat."""
        return portal.run(self._bridge.queue.recover_stale_jobs(timeout))

    def promote(self) -> int:
        """Let due jobs join the line; workers do this by themselves."""
        return portal.run(self._bridge.queue.promote())

    def prune(self, keep: timedelta | float | None = None) -> list[str]:
        """Forget finished jobs and events older than `keep`; workers do this by themselves."""
        return portal.run(self._bridge.queue.prune(keep))

    def handle(self, id: UUID | str) -> SyncHandle[Any]:
        """Make a handle of a job from its id.

        Its result is decoded where the job's type is registered with this queue, else plain JSON.
        """
        return SyncHandle(self._bridge.queue.handle(id).id, self._bridge)

    def get(self, id: UUID | str) -> Job:
        """Return one job as it stands; raises JobNotFound."""
        return portal.run(self._bridge.queue.get(id))

    def jobs(
        self,
        *,
        status: State | str | Sequence[State | str] = (),
        job_type: str | Sequence[str] = (),
        worker_id: str | None = None,
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """List jobs, newest first; `before` is the last id of the page before."""
        return portal.run(
            self._bridge.queue.jobs(
                status=status, job_type=job_type, worker_id=worker_id, before=before, limit=limit
            )
        )

    def counts(self) -> dict[str, dict[State, int]]:
        """Count jobs by type and state, without scanning the history."""
        return portal.run(self._bridge.queue.counts())

    def workers(self) -> list[WorkerHealth]:
        """Return who is alive, and who was."""
        return portal.run(self._bridge.queue.workers())

    def cancel(
        self, ids: Iterable[UUID | str] | UUID | str, reason: object = "cancelled"
    ) -> set[UUID]:
        """Cancel a job or several, waiting or at work; returns those that had not ended yet."""
        return portal.run(self._bridge.queue.cancel(ids, reason))

    def requeue(self, ids: Iterable[UUID | str] | UUID | str, attempts: int = 1) -> set[UUID]:
        """Give failed or cancelled jobs more attempts; returns those that were."""
        return portal.run(self._bridge.queue.requeue(ids, attempts))

    def why(self, id: UUID | str) -> Why:
        """Say why a job is where it is, in a sentence and a reason; raises JobNotFound."""
        return portal.run(self._bridge.queue.why(id))

    def pause(self, job_type: str, reason: str | None = None) -> bool:
        """Let no worker claim jobs of this type; returns whether it was not paused before."""
        return portal.run(self._bridge.queue.pause(job_type, reason))

    def resume(self, job_type: str) -> bool:
        """Let jobs of a paused type be claimed again; returns whether it was paused."""
        return portal.run(self._bridge.queue.resume(job_type))
