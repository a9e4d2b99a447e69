"""Queue: the async client. It checks arguments and calls the part that does the work.

`client/sync.py` is the same without `await`, written from this file by `make sync`.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar, overload
from uuid import UUID

from howdah import enqueue, payload
from howdah.admit import KeyOf, Rate, check_key, check_limit_name, key_rule, named_limit
from howdah.checks.arguments import (
    MOST_ATTEMPTS,
    as_list,
    check_count,
    check_flag,
    check_id,
    check_ids,
    check_lease,
    check_leases,
    check_names,
    check_reasons,
    check_text,
    check_whole,
)
from howdah.checks.durations import YEAR, check_length, check_wait
from howdah.checks.queue_names import DEFAULT_QUEUE
from howdah.checks.signals import check_signal_name, signal_data
from howdah.checks.unique import By, check_unique
from howdah.claim import claim as claiming
from howdah.client.follow import Follower
from howdah.client.handle import Handle
from howdah.client.job_type import JobType, unique_rule
from howdah.client.registry import ExceptionTypes, Registration, Registry, rules
from howdah.client.schedule_registration import ScheduleRegistration
from howdah.client.schedules import Schedules
from howdah.errors import BadInput, StaleLease
from howdah.handler import Backoff, Handler, Run, check_job_type
from howdah.job import (
    DEFAULT_MAX_ATTEMPTS,
    DEFAULT_PRIORITY,
    NEVER,
    Draft,
    Job,
    Lease,
    OnConflict,
    Until,
)
from howdah.observe.filter import Filter
from howdah.observe.job_types import warn_unregistered
from howdah.observe.key_counts import KeyCounts, key_counts
from howdah.observe.limits import Limits
from howdah.observe.limits import limits as read_limits
from howdah.observe.page import list_jobs
from howdah.observe.queue_depth import queue_depth
from howdah.observe.why import Why
from howdah.observe.why import why as explain
from howdah.observe.workers import WorkerHealth, worker_health
from howdah.run.context import JobContext
from howdah.run.hooks import EndHook, StartHook
from howdah.states import State, Verb
from howdah.store import Store, steer
from howdah.store import admit as store_admit
from howdah.store import settle as store_settle
from howdah.store import steps as store_steps
from howdah.store import upkeep as store_upkeep
from howdah.store.upkeep import Recovered
from howdah.text.reasons import reason_from, shown
from howdah.timing import Missed, Overlap, check_timing
from howdah.waits_for import WaitsFor
from howdah.worker import Worker

P = ParamSpec("P")
R = TypeVar("R")
Word = TypeVar("Word", State, WaitsFor)


class Queue:
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
        for name, given in (("dsn", dsn), ("listen_dsn", listen_dsn)):
            if given is not None and not isinstance(given, str):  # pyright: ignore
                raise BadInput(f"{name} must be text, not {type(given).__name__}")
        if pgbouncer is not None:
            check_flag("pgbouncer", pgbouncer)
        self.store: Store = Store(
            dsn,
            listen_dsn=listen_dsn,
            pgbouncer=pgbouncer,
            connections=connections,
            call_timeout=check_length("call_timeout", call_timeout, YEAR).total_seconds(),
        )
        self._registry = Registry()
        self._follower: Follower | None = None
        self._checked_types: set[str] = set()  # types that are not registered here, warned of once

    def for_other_loop(self) -> Queue:
        """Make a queue with the same functions, and its own connections for another loop."""
        other = copy.copy(self)
        other.store, other._follower = self.store.for_other_loop(), None
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
        """Connect; any call on a queue that is not open does it, too."""
        await self.store.open()

    async def close(self) -> None:
        """Close every connection, and release the embedded PostgreSQL."""
        if self._follower is not None:
            await self._follower.close()
        await self.store.close()

    async def install(self) -> bool:
        """Install or upgrade the schema; returns whether anything was changed."""
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
    ) -> JobType[..., Any] | Registration:
        """Register a function as a type of job, bare or with options.

        `key` is the name of a parameter, or a function of the payload. No more than `at_once` jobs
        with the same key run at once; with `ordered`, one after the other in the order of
        enqueueing. With `fair` there is no such limit, but keys take turns: a key with many jobs
        does not keep others waiting. `limit` names a limit, see `queue.limit`.
        """
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
            ),
        )
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
        self._registry.add_limit(named_limit(name, at_once, rate, per_key))

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
    ) -> ScheduleRegistration:
        """Enqueue a job of this type at the times of a cron expression, in the time zone `tz`.

        Above or below `@queue.job`; a function without it becomes a job type, too. Workers write
        the schedule when they start. `data` has the arguments of its jobs, `name` is by default
        that of the type; `missed` and `overlap` are as in `schedules.set`.
        """
        timing = check_timing(expression, None, tz)
        return ScheduleRegistration(self._registry, self, timing, name, data, missed, overlap)

    def every(
        self,
        interval: timedelta | float,
        /,
        *,
        name: str | None = None,
        data: Mapping[str, Any] | None = None,
        missed: Missed = "last",
        overlap: Overlap = "allow",
    ) -> ScheduleRegistration:
        """Enqueue a job of this type every so often; the first one so long after the start.

        The same as `cron` else.
        """
        timing = check_timing(None, interval)
        return ScheduleRegistration(self._registry, self, timing, name, data, missed, overlap)

    @property
    def schedules(self) -> Schedules:
        """The schedules, to list, set, pause, resume, remove and run them."""
        return Schedules(self)

    def on_start(self, hook: StartHook) -> StartHook:
        """Call this function when an attempt starts: `@queue.on_start`, sync or async."""
        self._registry.hooks.add("start", hook)
        return hook

    def on_end(self, hook: EndHook) -> EndHook:
        """Call this function when an attempt has ended in any way."""
        self._registry.hooks.add("end", hook)
        return hook

    def on_retry(self, hook: EndHook) -> EndHook:
        """Call this function when an attempt has failed and the job will be tried again."""
        self._registry.hooks.add("retry", hook)
        return hook

    def on_failure(self, hook: EndHook) -> EndHook:
        """Call this function when a job has failed and is not retried."""
        self._registry.hooks.add("failure", hook)
        return hook

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
        expires: timedelta | float | None = None,
        expires_at: datetime | None = None,
        unique: By | None = None,
        unique_until: Until | None = None,
        unique_for: timedelta | float | None = None,
        on_conflict: OnConflict | None = None,
        key: object = None,
    ) -> Draft:
        """Make a draft by the name of its type; checked if the function is registered here."""
        handler = self.handlers.get(check_job_type(job_type))
        if data is not None and not isinstance(data, Mapping):  # pyright: ignore
            raise BadInput(f"a payload must be a mapping of arguments, not {type(data).__name__}")
        if handler is not None:
            encoded = handler.encode((), data or {})
            if priority is None:
                priority = handler.rules.priority
            if max_attempts is None:
                max_attempts = handler.rules.max_attempts
            if expires is None and expires_at is None:
                expires = handler.rules.expires or NEVER
            rule = unique_rule(handler, unique, unique_until, unique_for, on_conflict)
            if key is None:
                key = handler.key_of(encoded)
        else:
            rule = check_unique(unique, unique_until, unique_for, on_conflict)
            encoded = payload.encode(dict(data or {}), f"the payload of {job_type!r}")
        return enqueue.draft(
            job_type,
            encoded,
            unique=rule,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            expires=expires,
            expires_at=expires_at,
            key=key,
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
        expires: timedelta | float | None = None,
        expires_at: datetime | None = None,
        unique: By | None = None,
        unique_until: Until | None = None,
        unique_for: timedelta | float | None = None,
        on_conflict: OnConflict | None = None,
        key: object = None,
        conn: Any = None,
    ) -> Handle[Any]:
        """Enqueue one job by the name of its type; its function may be in another program."""
        draft = self.draft(
            job_type,
            data,
            unique=unique,
            unique_until=unique_until,
            unique_for=unique_for,
            on_conflict=on_conflict,
            priority=priority,
            run_at=run_at,
            delay=delay,
            max_attempts=max_attempts,
            expires=expires,
            expires_at=expires_at,
            key=key,
        )
        id = await enqueue.enqueue(self.store, draft, conn)
        known = job_type in self.handlers or job_type in self._checked_types
        if not known and conn is None and len(self._checked_types) < 1000:
            self._checked_types.add(job_type)
            await warn_unregistered(self.store, job_type)
        return self._handle(id, existed=id != draft.id)

    @overload
    async def enqueue_many(
        self,
        drafts: Iterable[Draft] | AsyncIterable[Draft],
        *,
        conn: Any = None,
        returning: Literal["count"] = "count",
    ) -> int: ...
    @overload
    async def enqueue_many(
        self,
        drafts: Iterable[Draft] | AsyncIterable[Draft],
        *,
        conn: Any = None,
        returning: Literal["ids"],
    ) -> list[UUID]: ...
    @overload
    async def enqueue_many(
        self,
        drafts: Iterable[Draft] | AsyncIterable[Draft],
        *,
        conn: Any = None,
        returning: Literal["handles"],
    ) -> list[Handle[Any]]: ...
    async def enqueue_many(
        self,
        drafts: Iterable[Draft] | AsyncIterable[Draft],
        *,
        conn: Any = None,
        returning: Literal["count", "ids", "handles"] = "count",
    ) -> int | list[UUID] | list[Handle[Any]]:
        """Enqueue a stream of drafts of any types, all or none; returns the count.

        With `returning="ids"` or `"handles"` it returns those, in the order of the stream. They
        are kept in memory; the stream itself is not.
        """
        enqueue.check_returning(returning)
        if returning == "count":
            return await enqueue.enqueue_many(self.store, drafts, conn)
        ids = await enqueue.enqueue_many_ids(self.store, drafts, conn)
        if returning == "ids":
            return [id for id, _ in ids]
        return [self._handle(id, existed=existed) for id, existed in ids]

    # ── work ──────────────────────────────────────────────────────────────────────────────

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
    ) -> Worker:
        """Make a worker: `async with queue.worker(): …`, or `await queue.worker().run()`.

        It runs all registered types, or those in `job_types`, or those of the named `queues`.
        """
        return Worker(
            self.store,
            self.handlers,
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
            hooks=self._registry.hooks,
            limits=self._registry.limits,
            plans=self._registry.plans,
            log_jobs=log_jobs,
        )

    async def claim(
        self, job_types: Iterable[str] | str, batch_size: int = 10, *, worker_id: str
    ) -> list[Job]:
        """Claim jobs for your own loop; settle each with the returned job, which has the lease."""
        return await claiming.claim_batch(
            self.store,
            check_text("worker_id", worker_id),
            check_names("job_types", job_types),
            check_whole("batch_size", batch_size, 1, 10_000),
        )

    async def complete(self, job: Job | Lease, result: Any = None) -> None:
        """Complete an attempt; raises StaleLease if it is no longer yours."""
        moved = await self.complete_many([check_lease(job)], [result])
        _refuse_stale(moved, job)

    async def complete_many(
        self, jobs: Sequence[Job | Lease] | Job | Lease, results: Sequence[Any] | None = None
    ) -> set[UUID]:
        """Complete attempts; returns the ids of those that were still yours."""
        leases = check_leases(jobs)
        values: list[Any] = [None] * len(leases)
        if results is not None:
            values = check_count("results", as_list("results", results, "results"), len(leases))
        encoded = [
            None if value is None else payload.encode(value, "a result", limit=payload.MAX_BYTES)
            for value in values
        ]
        return await store_settle.settle_leases(self.store, Verb.COMPLETE, leases, encoded)

    async def fail(
        self, job: Job | Lease, error: object, *, retry: bool = True, delay: timedelta | float = 0
    ) -> State:
        """Report that an attempt failed: the job is retried if attempts are left, else it fails.

        The error is text, an exception or any object, stored as text. Returns the new state;
        raises StaleLease if the attempt is no longer yours.
        """
        moved = await self.fail_many([check_lease(job)], [error], retry=retry, delay=delay)
        _refuse_stale(set(moved), job)
        return moved[job.id]

    async def fail_many(
        self,
        jobs: Sequence[Job | Lease],
        errors: Sequence[object],
        *,
        retry: bool = True,
        delay: timedelta | float = 0,
    ) -> dict[UUID, State]:
        """Report that attempts failed; returns the new state of each that was still yours."""
        leases, wait = check_leases(jobs), check_wait("delay", delay)
        reasons = check_reasons(errors, len(leases))
        if check_flag("retry", retry):
            return await store_settle.retry_leases(self.store, leases, reasons, wait)
        moved = await store_settle.settle_leases(self.store, Verb.FAIL, leases, reasons)
        return dict.fromkeys(moved, State.FAILED)

    async def release(self, jobs: Sequence[Job | Lease] | Job | Lease) -> set[UUID]:
        """Release jobs that were not run; the attempt does not count. Returns those still yours."""
        leases = check_leases(jobs)
        return await store_settle.settle_leases(
            self.store, Verb.RELEASE, leases, [None] * len(leases)
        )

    async def recover_stale_jobs(
        self, timeout: timedelta | float = timedelta(minutes=5)
    ) -> list[Recovered]:
        """Take jobs from silent workers; `timeout` is for workers that never sent a beat."""
        return await store_upkeep.recover_stale_jobs(self.store, check_length("timeout", timeout))

    async def promote(self) -> int:
        """Put due jobs into the line; workers do this by themselves."""
        return await store_upkeep.promote(self.store)

    async def prune(self, keep: timedelta | float | None = None) -> list[str]:
        """Delete finished jobs and events older than `keep`; workers do this by themselves."""
        return await store_upkeep.prune(
            self.store, None if keep is None else check_wait("keep", keep)
        )

    # ── observe and steer ─────────────────────────────────────────────────────────────────

    def handle(self, id: UUID | str) -> Handle[Any]:
        """Make a handle of a job from its id.

        Its result is decoded if the job's type is registered with this queue, else plain JSON.
        """
        return self._handle(check_id(id), existed=False)

    def _handle(self, id: UUID, *, existed: bool) -> Handle[Any]:
        return Handle(id, self.store, self.follower, self.handlers, existed=existed)

    async def get(self, id: UUID | str) -> Job:
        """Return the current state of one job; raises JobNotFound."""
        return await self.handle(id).job()

    async def jobs(
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
        wanted = Filter(
            status=_words("status", status, State, "states"),
            job_type=tuple(check_names("job_type", job_type)),
            queue=tuple(check_names("queue", queue, "names of queues")),
            worker_id=None if worker_id is None else check_text("worker_id", worker_id),
            key=None if key is None else check_key(key),
            limited_by=None if limited_by is None else check_text("limited_by", limited_by, 301),
            waits_for=_words("waits_for", waits_for, WaitsFor, "what jobs wait for"),
        )
        return await list_jobs(
            self.store,
            wanted,
            before=None if before is None else check_id(before),
            limit=check_whole("limit", limit, 1, 10_000),
        )

    async def counts(self) -> dict[str, dict[State, int]]:
        """Count jobs by type and state, without scanning the history."""
        return await queue_depth(self.store)

    async def key_counts(self, job_type: str, limit: int = 20) -> KeyCounts:
        """Count the jobs of a type by concurrency key: how many hold a slot, how many wait.

        Returns the keys for which most jobs wait. The cost is bounded: of a type with many keys
        only some are compared, and `exhausted` says so.
        """
        return await key_counts(
            self.store, check_job_type(job_type), limit=check_whole("limit", limit, 1, 1000)
        )

    async def workers(self) -> list[WorkerHealth]:
        """List the workers, alive or silent."""
        return await worker_health(self.store)

    async def cancel(
        self, ids: Iterable[UUID | str] | UUID | str, reason: object = "cancelled"
    ) -> set[UUID]:
        """Cancel jobs that wait or run; returns those that had not ended yet."""
        return await store_settle.cancel(
            self.store, check_ids(ids), reason_from(reason) or "cancelled"
        )

    async def requeue(self, ids: Iterable[UUID | str] | UUID | str, attempts: int = 1) -> set[UUID]:
        """Give failed or cancelled jobs more attempts; returns the ids that were requeued."""
        return await store_upkeep.requeue(
            self.store, check_ids(ids), check_whole("attempts", attempts, 1, MOST_ATTEMPTS)
        )

    async def signal(self, id: UUID | str, name: str, data: Any = None) -> bool:
        """Send a signal to a job; returns whether it waited for it. Else the signal is kept.

        Raises JobNotFound, and JobEnded for a job that has ended.
        """
        return await store_steps.signal(
            self.store, check_id(id), check_signal_name(name), signal_data(data)
        )

    async def why(self, id: UUID | str) -> Why:
        """Explain why a job is in its state; raises JobNotFound."""
        return await explain(self.store, check_id(id))

    async def pause(self, job_type: str, reason: str | None = None) -> bool:
        """Stop workers from claiming jobs of this type; returns False if it was paused already."""
        why = None if reason is None else reason_from(reason)
        return await steer.pause(self.store, check_job_type(job_type), why)

    async def resume(self, job_type: str) -> bool:
        """Let workers claim jobs of a paused type again; returns whether it was paused."""
        return await steer.resume(self.store, check_job_type(job_type))

    async def set_limit(
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
        await store_admit.set_limit(self.store, named_limit(name, at_once, rate, per_key))

    async def remove_limit(self, name: str) -> bool:
        """Remove a named limit, also from the rules of types; returns False if there is none."""
        return await store_admit.remove_limit(self.store, check_limit_name(name))

    async def set_type_limit(
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
        rule = key_rule(at_once=at_once, ordered=ordered, fair=fair, limit=limit)
        await store_admit.set_type_limit(self.store, check_job_type(job_type), rule)

    async def clear_type_limit(self, job_type: str) -> bool:
        """Remove the rule of a job type: a key has one slot; returns False if it has none."""
        return await store_admit.clear_type_limit(self.store, check_job_type(job_type))

    async def limits(self) -> Limits:
        """Return the named limits and the rules of types, and how they are used now."""
        return await read_limits(self.store)


def _refuse_stale(moved: set[UUID], job: Job | Lease) -> None:
    if job.id not in moved:
        raise StaleLease(
            f"job {job.id}: this attempt is no longer yours; it was cancelled, recovered or "
            "settled before. Nothing was changed: stop working on it"
        )


def _words(what: str, given: object, words: type[Word], members: str) -> tuple[Word, ...]:
    """Return one word, or several, as members of an enumeration."""
    values = [given] if isinstance(given, str) else as_list(what, given, members)
    return tuple(_word(what, value, words) for value in values)


def _word(what: str, value: object, words: type[Word]) -> Word:
    try:
        return words(value)
    except ValueError:
        known = ", ".join(words)
        raise BadInput(f"{what} must be one of {known}, not {shown(value)}") from None
