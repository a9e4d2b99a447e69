"""Client: the queue as a program sees it. Forwards, nothing else.

`client_sync.py` is the same without `await`, written from this file by `make sync`.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from howdah import claim as claiming
from howdah import enqueue as room
from howdah import payload
from howdah.errors import BadInput, StaleLease
from howdah.follow import Follower
from howdah.handle import Handle
from howdah.handler import Backoff, Handler, Run
from howdah.job import DEFAULT_MAX_ATTEMPTS, DEFAULT_PRIORITY, Draft, Job, Lease
from howdah.jobtype import JobType
from howdah.observe import steer
from howdah.observe.job_types import warn_unregistered
from howdah.observe.why import Why
from howdah.observe.why import why as explain
from howdah.registry import ExceptionType, Registration, Registry, rules
from howdah.run.context import JobContext
from howdah.states import State, Verb
from howdah.store import Store, ask, call
from howdah.store.ask import WorkerHealth
from howdah.store.call import Recovered
from howdah.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")


class Queue:
    """A job queue in one PostgreSQL database.

    The database is `dsn`, else HOWDAH_DSN, else DATABASE_URL, else a private PostgreSQL that is
    started for you. A pooler such as PgBouncer before it is noticed, unless `pgbouncer` says; to
    be told of new jobs at once behind one, give a direct `listen_dsn` (HOWDAH_LISTEN_DSN):
    without it workers poll. A call that gets no answer within `patience` fails as Unreachable,
    and its connection is given up.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        listen_dsn: str | None = None,
        pgbouncer: bool | None = None,
        connections: int = 8,
        patience: timedelta = timedelta(seconds=30),
    ) -> None:
        if patience <= timedelta():
            raise BadInput(f"patience must be longer than nothing, not {patience}")
        self.store: Store = Store(
            dsn,
            listen_dsn=listen_dsn,
            pgbouncer=pgbouncer,
            connections=connections,
            patience=patience.total_seconds(),
        )
        self._registry = Registry()
        self._follower: Follower | None = None
        self._asked: set[str] = set()  # types without a function here that were looked up

    def another(self) -> Queue:
        """Make the same queue, functions and all, with connections of its own for another loop."""
        other = copy.copy(self)
        other.store, other._follower = self.store.another(), None
        return other

    def __repr__(self) -> str:
        return f"<Queue at {self.store.shown_dsn}>"

    # ── open and close ────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect; any call on a queue that is not open does it too."""
        await self.store.open()

    async def close(self) -> None:
        """Let go of every connection, and of the embedded PostgreSQL."""
        follower, self._follower = self._follower, None
        if follower is not None:
            await follower.close()
        await self.store.close()

    async def install(self) -> bool:
        """Make or upgrade the schema; returns whether anything had to be done."""
        return await self.store.install()

    # ── register ──────────────────────────────────────────────────────────────────────────

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """The registered functions by job type."""
        return self._registry.handlers

    @property
    def follower(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(self.store)
        return self._follower

    @overload
    def job(
        self, function: Callable[Concatenate[JobContext, P], Awaitable[R]], /
    ) -> JobType[P, R]: ...
    @overload
    def job(self, function: Callable[P, Awaitable[R]], /) -> JobType[P, R]: ...
    @overload
    def job(self, function: Callable[Concatenate[JobContext, P], R], /) -> JobType[P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobType[P, R]: ...
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
        backoff: Backoff | None = None,
        retry_on: ExceptionType | tuple[ExceptionType, ...] = Exception,
        fail_on: ExceptionType | tuple[ExceptionType, ...] = (),
        label: str | None = None,
    ) -> Registration: ...
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
        backoff: Backoff | None = None,
        retry_on: ExceptionType | tuple[ExceptionType, ...] = Exception,
        fail_on: ExceptionType | tuple[ExceptionType, ...] = (),
        label: str | None = None,
    ) -> JobType[..., Any] | Registration:
        """Register a function as a type of job, bare or with options."""
        registration = Registration(
            self._registry,
            self,
            name,
            rules(
                priority=priority,
                max_attempts=max_attempts,
                timeout=timeout,
                run=run,
                backoff=backoff,
                retry_on=retry_on,
                fail_on=fail_on,
                label=label,
            ),
        )
        return registration if function is None else registration(function)

    # ── enqueue ───────────────────────────────────────────────────────────────────────────

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
        handler = self.handlers.get(job_type)
        if data is not None and not isinstance(data, Mapping):  # pyright: ignore
            raise BadInput(f"a payload is a mapping of arguments, not {type(data).__name__}")
        if handler is not None:
            encoded = handler.encode((), data or {})
            if priority is None:
                priority = handler.rules.priority
            if max_attempts is None:
                max_attempts = handler.rules.max_attempts
        else:
            encoded = payload.encode(dict(data or {}), f"the payload of {job_type!r}")
        return room.draft(
            job_type,
            encoded,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
        )

    async def enqueue(
        self,
        job_type: str,
        data: Mapping[str, Any] | None = None,
        *,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: timedelta | float | None = None,
        max_attempts: int | None = None,
        conn: Any = None,
    ) -> Handle[Any]:
        """Hand over one job by the name of its type, whoever knows the function."""
        made = self.draft(
            job_type,
            data,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
        )
        await room.enqueue(self.store, made, conn)
        known = job_type in self.handlers or job_type in self._asked
        if not known and conn is None and len(self._asked) < 1000:
            self._asked.add(job_type)  # once for each name
            await warn_unregistered(self.store, job_type)
        return self.handle(made.id)

    async def enqueue_many(
        self, drafts: Iterable[Draft] | AsyncIterable[Draft], *, conn: Any = None
    ) -> int:
        """Hand over a stream of drafts of any types: all of them or none; returns the count."""
        return await room.enqueue_many(self.store, drafts, conn)

    # ── work ──────────────────────────────────────────────────────────────────────────────

    def worker(
        self,
        *,
        concurrency: int = 100,
        job_types: Iterable[str] | None = None,
        batch_size: int = 2000,
        processes: int | None = None,
        poll: timedelta = timedelta(seconds=1),
        grace: timedelta = timedelta(seconds=30),
        silent_after: timedelta = timedelta(seconds=15),
        stale_after: timedelta = timedelta(minutes=5),
        upkeep_every: timedelta = timedelta(seconds=1),
        worker_id: str | None = None,
    ) -> Worker:
        """Make a worker: `async with queue.worker(): …`, or `await queue.worker().run()`."""
        return Worker(
            self.store,
            self.handlers,
            concurrency=concurrency,
            job_types=job_types,
            batch_size=batch_size,
            processes=processes,
            poll=poll,
            grace=grace,
            silent_after=silent_after,
            stale_after=stale_after,
            upkeep_every=upkeep_every,
            worker_id=worker_id,
        )

    async def claim(
        self, job_types: Sequence[str], batch_size: int = 10, *, worker_id: str
    ) -> list[Job]:
        """Claim jobs for a loop of your own; settle each with its job, which is its lease."""
        return await claiming.claim_batch(self.store, worker_id, job_types, batch_size)

    async def complete(self, job: Job | Lease, result: Any = None) -> None:
        """Say that an attempt ended well; raises StaleLease when it is no longer yours."""
        moved = await self.complete_many([job], [result])
        _fenced(moved, job)

    async def complete_many(
        self, jobs: Sequence[Job | Lease], results: Sequence[Any] | None = None
    ) -> set[UUID]:
        """Say that attempts ended well; returns the ids that were still yours."""
        said = [None] * len(jobs) if results is None else results
        encoded = [
            None if r is None else payload.encode(r, "a result", limit=payload.MAX_BYTES)
            for r in said
        ]
        return await call.settle_leases(self.store, Verb.COMPLETE, _leases(jobs), encoded)

    async def fail(
        self, job: Job | Lease, error: str, *, retry: bool = True, delay: timedelta | float = 0
    ) -> State:
        """Say that an attempt failed: it is retried while attempts are left, then it has failed.

        Returns where it went; raises StaleLease when it is no longer yours.
        """
        moved = await self.fail_many([job], [error], retry=retry, delay=delay)
        _fenced(set(moved), job)
        return moved[job.id]

    async def fail_many(
        self,
        jobs: Sequence[Job | Lease],
        errors: Sequence[str],
        *,
        retry: bool = True,
        delay: timedelta | float = 0,
    ) -> dict[UUID, State]:
        """Say that attempts failed; returns where each that was still yours went."""
        if retry:
            wait = room.check_delay(delay, None) or timedelta()
            return await call.retry_leases(self.store, _leases(jobs), errors, wait)
        moved = await call.settle_leases(self.store, Verb.FAIL, _leases(jobs), errors)
        return dict.fromkeys(moved, State.FAILED)

    async def release(self, jobs: Sequence[Job | Lease]) -> set[UUID]:
        """Hand jobs back unrun, the attempt not counted; returns the ids that were yours."""
        return await call.settle_leases(self.store, Verb.RELEASE, _leases(jobs), [None] * len(jobs))

    async def recover_stale_jobs(
        self, timeout: timedelta = timedelta(minutes=5)
    ) -> list[Recovered]:
        """Take jobs from workers that fell silent; `timeout` is for those that never beat."""
        return await call.recover_stale_jobs(self.store, timeout)

    async def promote(self) -> int:
        """Let due jobs join the line; workers do this by themselves."""
        return await call.promote(self.store)

    async def prune(self, keep: timedelta | None = None) -> list[str]:
        """Forget finished jobs and events older than `keep`; workers do this by themselves."""
        return await call.prune(self.store, keep)

    # ── look and steer ────────────────────────────────────────────────────────────────────

    def handle(self, id: UUID | str) -> Handle[Any]:
        """Make a handle of a job from its id."""
        return Handle(_uuid(id), self.store, self.follower)

    async def get(self, id: UUID | str) -> Job:
        """Return one job as it stands; raises JobNotFound."""
        return await self.handle(id).job()

    async def jobs(
        self,
        *,
        status: State | str | Sequence[State | str] = (),
        job_type: str | Sequence[str] = (),
        worker_id: str | None = None,
        before: UUID | str | None = None,
        limit: int = 50,
    ) -> list[Job]:
        """List jobs, newest first; `before` is the last id of the page before."""
        if not 1 <= limit <= 10_000:
            raise BadInput(f"limit lies between 1 and 10000, not {limit}")
        statuses = [status] if isinstance(status, str) else status
        return await ask.jobs(
            self.store,
            statuses=[_state(one) for one in statuses],
            job_types=[job_type] if isinstance(job_type, str) else job_type,
            worker_id=worker_id,
            before=None if before is None else _uuid(before),
            limit=limit,
        )

    async def counts(self) -> dict[str, dict[State, int]]:
        """Count jobs by type and state, without scanning the history."""
        return await ask.counts(self.store)

    async def workers(self) -> list[WorkerHealth]:
        """Return who is alive, and who was."""
        return await ask.workers(self.store)

    async def cancel(self, ids: Sequence[UUID | str], reason: str = "cancelled") -> set[UUID]:
        """Cancel jobs, waiting or at work; returns those that had not ended yet."""
        return await call.cancel(self.store, [_uuid(id) for id in ids], reason)

    async def requeue(self, ids: Sequence[UUID | str], attempts: int = 1) -> set[UUID]:
        """Give failed or cancelled jobs more attempts; returns those that were."""
        return await call.requeue(self.store, [_uuid(id) for id in ids], attempts)

    async def why(self, id: UUID | str) -> Why:
        """Say why a job is where it is, in a sentence and a reason; raises JobNotFound."""
        return await explain(self.store, _uuid(id))

    async def pause(self, job_type: str, reason: str | None = None) -> bool:
        """Let no worker claim jobs of this type; returns whether it was not paused before."""
        return await steer.pause(self.store, job_type, reason)

    async def resume(self, job_type: str) -> bool:
        """Let jobs of a paused type be claimed again; returns whether it was paused."""
        return await steer.resume(self.store, job_type)


def _leases(jobs: Sequence[Job | Lease]) -> list[Lease]:
    return [job.lease if isinstance(job, Job) else job for job in jobs]


def _fenced(moved: set[UUID], job: Job | Lease) -> None:
    if job.id not in moved:
        raise StaleLease(
            f"job {job.id}: this attempt is no longer yours; "
            "it was cancelled, recovered or settled before, and nothing was changed"
        )


def _uuid(id: UUID | str) -> UUID:
    if isinstance(id, UUID):
        return id
    try:
        return UUID(id)
    except (ValueError, AttributeError, TypeError):
        raise BadInput(f"a job id is a uuid, not {id!r}") from None


def _state(status: State | str) -> State:
    try:
        return State(status)
    except ValueError:
        known = ", ".join(State)
        raise BadInput(f"a status is one of {known}, not {status!r}") from None
