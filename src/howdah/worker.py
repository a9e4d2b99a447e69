"""Worker: claim, run and settle jobs until it is stopped.

`WorkerParts` connects the parts. This module starts them, stops them in order, and ends the worker
if one of them breaks. Every loop survives a database that is away: it waits and tries again.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from howdah.admit import Limit
from howdah.checks.arguments import check_names, check_text, check_whole
from howdah.checks.durations import YEAR, check_length, check_wait
from howdah.checks.queue_names import refuse_unknown_queues
from howdah.errors import BadInput, HowdahError
from howdah.growing_pause import GrowingPause
from howdah.handler import Handler
from howdah.run.hooks import Hooks
from howdah.run.process.import_check import check_process_handlers
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import run as store_run
from howdah.store.errors import transient
from howdah.store.schedules import Plan
from howdah.text.reasons import shown
from howdah.worker_parts import WorkerOptions, WorkerParts

_log = log_named("howdah.worker")

CLEANUP = 2.0  # seconds that handlers get to end when they are stopped
LAST_FLUSH = 15.0  # seconds to wait for the last endings to be written


def _new_id() -> str:
    """Return an id that no other worker has and that tells people where it runs."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"


def _taken(
    handlers: Mapping[str, Handler],
    job_types: Iterable[str] | str | None,
    queues: Iterable[str] | str | None,
) -> list[str]:
    """Return the job types that a worker runs: those named, those of the named queues, or all."""
    if job_types is not None and queues is not None:
        raise BadInput("give job_types or queues, not both: each chooses what the worker runs")
    if queues is not None:
        named = check_names("queues", queues, "names of queues")
        if not named:
            raise BadInput("queues is empty: name a queue, or leave it out to run all job types")
        refuse_unknown_queues(named, {handler.rules.queue for handler in handlers.values()})
        taken = {name for name, handler in handlers.items() if handler.rules.queue in named}
    else:
        taken = set(handlers if job_types is None else check_names("job_types", job_types))
    if unknown := taken - set(handlers):
        known = ", ".join(sorted(handlers)) or "none"
        raise BadInput(
            f"job_types: no function is registered for job type {min(unknown)!r}; "
            f"registered are: {shown(known)[1:-1]}"
        )
    if not taken and handlers:
        raise BadInput("job_types is empty: name a job type, or leave it out to run all of them")
    if not taken:
        raise BadInput("this worker has no job types: register functions with @queue.job")
    return sorted(taken)


class Worker:
    """Works on the jobs of one queue until it is stopped."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
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
        hooks: Hooks | None = None,
        limits: Mapping[str, Limit] | None = None,
        plans: Sequence[Plan] = (),
        log_jobs: bool = False,
    ) -> None:
        check_whole("concurrency", concurrency, 1, 10_000)
        check_whole("batch_size", batch_size, 1, 10_000)
        check_whole("threads", threads, 1, 10_000)
        if processes is not None:
            check_whole("processes", processes, 0, 10_000)
        poll = check_length("poll", poll, YEAR)
        grace = check_wait("grace", grace, YEAR)
        silent_after = check_length("silent_after", silent_after, YEAR)
        stale_after = check_length("stale_after", stale_after, YEAR)
        upkeep_every = check_length("upkeep_every", upkeep_every, YEAR)
        if worker_id is not None and worker_id != "":
            check_text("worker_id", worker_id)
        taken = _taken(handlers, job_types, queues)
        self.id: str = worker_id or _new_id()
        self._store = store
        self._options = WorkerOptions(
            worker_id=self.id,
            handlers={name: handlers[name] for name in taken},
            concurrency=concurrency,
            batch_size=batch_size,
            threads=threads,
            processes=processes or os.cpu_count() or 1,
            poll=poll,
            grace=grace,
            silent_after=silent_after,
            stale_after=stale_after,
            upkeep_every=upkeep_every,
            hooks=hooks,
            limits=limits or {},
            plans=plans,
            code_types=sorted(handlers),
            log_jobs=log_jobs,
        )
        self._stopping, self._stop_now = asyncio.Event(), asyncio.Event()
        self._parts: WorkerParts | None = None  # set when the worker has started
        self._tasks: list[asyncio.Task[None]] = []
        self._failure: BaseException | None = None

    # ── life ──────────────────────────────────────────────────────────────────────────────

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()
        if self._failure is not None and error is None:
            raise self._failure

    async def start(self) -> None:
        """Start to work, as soon as the database is there; returns after the first beat."""
        if self._parts is not None:
            raise HowdahError("this worker has started before: create another with queue.worker()")
        check_process_handlers(self._options.handlers.values())
        parts = WorkerParts(self._store, self._options, self._drain)
        try:
            if not await self._first_beat(parts):
                return
            await parts.type_registration.step()
            await parts.heartbeat.start()
            await parts.claim_loop.listen()
        except (asyncio.CancelledError, BadInput):
            await self._undo_start(parts)
            raise
        self._parts = parts
        if self._stopping.is_set():
            self._stop_claiming(parts)
        for name, loop in (
            ("claim", parts.claim_loop.run()),
            ("settle", parts.settler.run()),
            ("flush", parts.flusher.run()),
            ("upkeep", parts.upkeep.run()),
            ("measures", parts.measures.run()),
            ("types", parts.type_registration.run()),
        ):
            self._spawn(name, loop)
        _log.info(
            "worker.started id=%s types=%s concurrency=%d threads=%d listens=%s",
            self.id,
            ",".join(self._options.job_types),
            self._options.concurrency,
            parts.in_hand.thread_limit,
            parts.claim_loop.hears,
        )

    async def _first_beat(self, parts: WorkerParts) -> bool:
        """Beat for the first time, however long the database is away; False when stopped.

        Raises an error that no retry can fix: a wrong password, a schema of another version,
        a role without the rights of a worker.
        """
        pause = GrowingPause(0.1, 5.0)
        silent_after = self._options.silent_after
        while not self._stopping.is_set():
            try:
                async with self._store.acquire() as connection:
                    await store_run.beat(connection, self.id, [], silent_after, parts.info())
                return True
            except HowdahError as error:
                if not transient(error):
                    raise
                wait = pause.next()
                _log.warning("worker.waiting id=%s retry_in=%.1fs error=%s", self.id, wait, error)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()
        return False

    async def _undo_start(self, parts: WorkerParts) -> None:
        """Remove all traces of a worker that was stopped while it started."""
        await parts.claim_loop.close()
        await parts.heartbeat.stop()
        with suppress(HowdahError, TimeoutError):
            async with asyncio.timeout(2):
                await store_run.deregister(self._store, self.id)

    def _spawn(self, name: str, loop: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(loop, name=f"howdah-{name}")
        task.add_done_callback(self._loop_ended)
        self._tasks.append(task)

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        """Stop the worker if one of its loops broke: no retry can fix that."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("worker.broken id=%s error=%s", self.id, error)
            self._failure = self._failure or error
            self.shut_down()
            if self._parts is not None:
                if self._parts.in_hand.broken:
                    self._stop_now.set()  # what ends now could not be written
                self._parts.claim_loop.idle.set()

    async def run(self) -> None:
        """Work until `shut_down` is called, or until an error that no retry can fix."""
        async with self:
            await self.stopping()

    async def stopping(self) -> None:
        """Wait until `shut_down` is called, or until an error that no retry can fix."""
        await self._stopping.wait()

    async def run_until_idle(self) -> None:
        """Work until nothing is left that could be done now: for scripts and tests."""
        parts = self._started()
        await parts.claim_loop.until_idle()
        if parts.hook_calls is not None:
            await parts.hook_calls.done()
        if self._failure is not None:
            raise self._failure

    def _started(self) -> WorkerParts:
        if self._parts is None:
            raise HowdahError(
                "this worker has not started: use `async with queue.worker() as worker:`"
            )
        return self._parts

    @property
    def free_slots(self) -> int:
        """How many more jobs this worker could start now."""
        return self._started().in_hand.free

    def types_at_work(self) -> str:
        """Name the types of the running jobs, for the log. Safe in any thread."""
        return ",".join(self._parts.executor.types()) if self._parts is not None else ""

    @property
    def beaten_at(self) -> float | None:
        """When its last beat reached the database, by time.monotonic(); None before the first."""
        return self._parts.heartbeat.beaten_at if self._parts is not None else None

    @property
    def leaving(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def shut_down(self) -> None:
        """Ask the worker to stop; a second call asks it to stop at once. For signal handlers."""
        if self._stopping.is_set():
            self._stop_now.set()
        self._stopping.set()
        if self._parts is not None:
            self._stop_claiming(self._parts)

    def _stop_claiming(self, parts: WorkerParts) -> None:
        parts.leaving = True
        parts.claim_loop.stop()

    def _drain(self) -> None:
        """Stop because somebody asked for it through the database: see howdah.drain."""
        if not self._stopping.is_set():
            self.shut_down()

    async def stop(self) -> None:
        """Claim no more, release what has not started, let the rest end within the grace."""
        if not self._stopping.is_set():
            self.shut_down()
        parts = self._parts
        if parts is None:
            return  # stopped while it waited for the database
        _log.info("worker.stopping id=%s running=%d", self.id, len(parts.in_hand.running))
        await parts.claim_loop.ended()
        await parts.executor.drained(self._options.grace.total_seconds(), self._stop_now)
        parts.executor.release_all()
        await parts.executor.drained(CLEANUP, asyncio.Event())
        parts.executor.abandon_all()
        await parts.executor.drained(CLEANUP, asyncio.Event())  # of transactions that are open yet
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_FLUSH):
                await parts.settler.flushed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        async with AsyncExitStack() as closing:  # every part is closed, also if another one raises
            if parts.hook_calls is not None:
                closing.push_async_callback(parts.hook_calls.close, self._stop_now)
            closing.push_async_callback(parts.step_writer.close)  # after the executor
            closing.push_async_callback(parts.completions.close)
            closing.push_async_callback(parts.executor.close)
            closing.push_async_callback(parts.heartbeat.stop)
            closing.push_async_callback(parts.claim_loop.close)
        with suppress(HowdahError, TimeoutError):
            async with asyncio.timeout(5):
                if parts.unacknowledged.due_in() is not None:
                    await parts.unacknowledged.release_unknown()
                await parts.measures.step()
                if not parts.in_hand.unwritten_leases():  # else others must notice its silence
                    await store_run.deregister(self._store, self.id)
        _log.info(
            "worker.stopped id=%s settled=%d stale=%d",
            self.id,
            parts.settler.settled,
            parts.settler.stale,
        )
