"""Worker: claim → run → settle, joined.

The intake brings jobs in; attempts run up to `concurrency` at once; endings leave in batches; the
beat has a thread of its own. This is the only place that knows all the rooms. Every loop survives
the database going away: it waits and tries again.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import socket
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import msgspec

from howdah.checks.arguments import check_names, check_text, check_whole
from howdah.checks.durations import YEAR, check_length, check_wait
from howdah.claim.loop import ClaimLoop
from howdah.errors import BadInput, HowdahError
from howdah.handler import Handler
from howdah.job import Claim
from howdah.outcomes import Ending
from howdah.run.executor import Executor
from howdah.run.heartbeat import Heartbeat
from howdah.run.hooks import HookCalls, Hooks
from howdah.run.measures import Measures
from howdah.run.process.import_check import check_process_handlers
from howdah.run.reports import Reports
from howdah.run.type_registration import TypeRegistration
from howdah.safe_logging import log_named
from howdah.settle import Settler
from howdah.states import State, Verb
from howdah.store import Store
from howdah.store import run as store_run
from howdah.store.batches import write_in_parts
from howdah.store.errors import transient
from howdah.text.reasons import describe, shown
from howdah.upkeep.upkeep import Upkeep
from howdah.version import VERSION

_log = log_named("howdah.worker")

FLUSH = 0.2  # seconds between writes of progress, events and "running"
CLAIMING = "howdah-claim"
LAST_WORDS = 2.0  # seconds that handlers get to end when they are stopped
LAST_FLUSH = 15.0  # seconds to wait for the last endings to be written before giving up


def _new_name() -> str:
    """Name a worker so that nobody else has the name, and people can tell where it is."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"


def _limited(handlers: Mapping[str, Handler], threads: int, concurrency: int) -> set[str]:
    """Return the types of which fewer may run at once than there are slots."""
    if threads >= concurrency:
        return set()
    return {name for name, handler in handlers.items() if handler.run == "thread"}


class Worker:
    """Works on the jobs of one queue until it is stopped."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
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
        hooks: Hooks | None = None,
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
        given = handlers if job_types is None else check_names("job_types", job_types)
        taken = sorted(set(given))
        if unknown := set(taken) - set(handlers):
            known = ", ".join(sorted(handlers)) or "none"
            raise BadInput(
                f"job_types: no function is registered for job type {min(unknown)!r}; "
                f"registered are: {shown(known)[1:-1]}"
            )
        if not taken:
            raise BadInput("this worker knows no job types: register functions with @queue.job")
        self.id: str = worker_id or _new_name()
        self._store = store
        self._handlers = {name: handlers[name] for name in taken}
        self._concurrency = concurrency
        self._threads = threads
        self._limited = _limited(self._handlers, threads, concurrency)
        self._processes = processes or os.cpu_count() or 1
        self._grace = grace.total_seconds()
        self._silent_after = silent_after
        self._stale_after = stale_after
        self._reports = Reports()
        self._hooks = hooks
        self._log_jobs = log_jobs
        self._hook_calls: HookCalls | None = None
        self._upkeep = Upkeep(store, self.id, every=upkeep_every, stale_after=stale_after)
        self._measures = Measures(store, self.id, self._drain)
        self._type_registration = TypeRegistration(store, self.id, self._handlers)
        self._intake = ClaimLoop(
            store,
            self.id,
            taken,
            self._limited,
            self._measures,
            batch_size=batch_size,
            poll=poll,
            silent_after=silent_after,
            news=self._news,
            due=self._upkeep.heard,
        )
        self._stopping, self._hurry = asyncio.Event(), asyncio.Event()
        self._flush_now, self._flushing = asyncio.Event(), asyncio.Lock()
        self._started = False
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
        """Begin to work, as soon as the database is there; returns once the worker has beaten."""
        if self._started:
            raise HowdahError("a worker works once: make another with queue.worker()")
        check_process_handlers(self._handlers.values())
        self._settler = Settler(
            self._store,
            self.id,
            self._flush_reports,
            self._intake.unsure,
            self._settled,
            self._intake.holds,
            log_jobs=self._log_jobs,
        )
        self._hook_calls = HookCalls(self._hooks) if self._hooks else None
        self._attempts = Executor(
            self._handlers,
            self._reports,
            slots=self._concurrency,
            threads=self._threads,
            processes=self._processes,
            ended=self._ended,
            freed=self._intake.fill,
            tracing=self._store.tracing,
            hooks=self._hook_calls,
        )
        self._intake.serve(self._attempts, self._settler)
        self._heartbeat = Heartbeat(
            self._store,
            self.id,
            every=self._silent_after / 5,
            silent_after=self._silent_after,
            info=self._info,
            held=self._attempts.held,
            lost=self._attempts.lose,
            at_work=self._attempts.types,
            held_up_limit=self._stale_after,
        )
        try:
            if not await self._arrive():
                return
            await self._type_registration.step()
            await self._heartbeat.start()
            await self._intake.listen()
        except asyncio.CancelledError:
            await self._turn_back()
            raise
        self._started = True
        for name, loop in (
            ("claim", self._intake.run()),
            ("settle", self._settler.run()),
            ("flush", self._flush_loop()),
            ("upkeep", self._upkeep.run()),
            ("measures", self._measures.run()),
            ("types", self._type_registration.run()),
        ):
            self._go(name, loop)
        _log.info(
            "worker.started id=%s types=%s concurrency=%d threads=%d listens=%s",
            self.id,
            ",".join(self._intake.job_types),
            self._concurrency,
            min(self._threads, self._concurrency),
            self._intake.hears,
        )

    async def _arrive(self) -> bool:
        """Beat for the first time, however long the database is away; False when told to stop.

        Refuses what waiting does not heal: a wrong password, a schema that does not fit, a role
        that may not work.
        """
        wait = 0.1
        while not self._stopping.is_set():
            try:
                async with self._store.acquire() as connection:
                    await store_run.beat(connection, self.id, [], self._silent_after, self._info())
            except HowdahError as error:
                if not transient(error):
                    raise
                _log.warning("worker.waiting id=%s retry_in=%.1fs error=%s", self.id, wait, error)
            else:
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._stopping.wait()
            wait = min(wait * 2, 5.0)
        return False

    async def _turn_back(self) -> None:
        """Leave nothing behind that would look like a worker: it was stopped on its way in."""
        await self._intake.close()
        await self._heartbeat.stop()
        with suppress(HowdahError, TimeoutError):
            async with asyncio.timeout(2):
                await store_run.leave(self._store, self.id)

    def _go(self, name: str, loop: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(loop, name=f"howdah-{name}")
        task.add_done_callback(self._loop_ended)
        self._tasks.append(task)

    def _loop_ended(self, task: asyncio.Task[None]) -> None:
        """One of our own loops broke: a mistake that waiting will not heal."""
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("worker.broken id=%s error=%s", self.id, error)
            self._failure = self._failure or error
            self.shut_down()
            if self._settler.broken:
                self._hurry.set()  # what ends now could not be written down
            self._intake.idle.set()

    async def run(self) -> None:
        """Work until `shut_down` is called, or something is wrong for good."""
        async with self:
            await self.stopping()

    async def stopping(self) -> None:
        """Wait, once started, for `shut_down`, or for something that is wrong for good."""
        await self._stopping.wait()

    async def run_until_idle(self) -> None:
        """Work until nothing is left that could be done now: for scripts and tests."""
        await self._intake.until_idle()
        if self._hook_calls is not None:
            await self._hook_calls.done()
        if self._failure is not None:
            raise self._failure

    @property
    def free_slots(self) -> int:
        """How many more jobs this worker could start now."""
        return self._attempts.free

    def types_at_work(self) -> str:
        """Name the types of the jobs at work, for the log. May be called in any thread."""
        return ",".join(self._attempts.types()) if self._started else ""

    @property
    def beaten_at(self) -> float | None:
        """When its last beat reached the database, by time.monotonic(); None before the first."""
        return self._heartbeat.beaten_at if self._started else None

    @property
    def leaving(self) -> bool:
        """Whether it was told to stop."""
        return self._stopping.is_set()

    def shut_down(self) -> None:
        """Ask the worker to stop; asked again, to stop at once. For signal handlers."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()
        self._intake.stop()

    def _drain(self) -> None:
        """Somebody asked for it through the database: see howdah.drain."""
        if not self._stopping.is_set():
            self.shut_down()

    async def stop(self) -> None:
        """Claim no more, hand back what has not started, let the rest end within the grace."""
        if not self._stopping.is_set():
            self.shut_down()
        if not self._started:
            return  # told to stop while it waited for the database
        _log.info("worker.stopping id=%s running=%d", self.id, len(self._attempts))
        # what a claim takes that is on its way now must not be left behind
        await asyncio.wait([t for t in self._tasks if t.get_name() == CLAIMING], timeout=5)
        await self._intake.ended()
        await self._attempts.drained(self._grace, self._hurry)
        self._attempts.release_all()
        await self._attempts.drained(LAST_WORDS, asyncio.Event())
        self._attempts.abandon_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_FLUSH):
                await self._settler.flushed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        async with AsyncExitStack() as parting:  # of every part, whatever another says to it
            if self._hook_calls is not None:
                parting.push_async_callback(self._hook_calls.close, self._hurry)
            parting.push_async_callback(self._attempts.close)
            parting.push_async_callback(self._heartbeat.stop)
            parting.push_async_callback(self._intake.close)
        with suppress(HowdahError, TimeoutError):
            async with asyncio.timeout(5):
                await self._intake.release_unacknowledged()
                await self._measures.step()
                if not self._settler.held():  # else others must notice that it is silent
                    await store_run.leave(self._store, self.id)
        _log.info(
            "worker.stopped id=%s settled=%d stale=%d",
            self.id,
            self._settler.settled,
            self._settler.stale,
        )

    # ── run and report ────────────────────────────────────────────────────────────────────

    def _ended(self, ending: Ending) -> None:
        self._settler.add(ending)
        self._intake.job_ended(ending)

    def _settled(
        self,
        verb: Verb,
        endings: Sequence[Ending],
        moved: dict[UUID, State | None],
        taken_up: float,
    ) -> None:
        self._measures.settled(verb, endings, moved, taken_up)
        self._intake.settled(verb, endings)
        if self._hook_calls is not None:
            self._hook_calls.settled(endings, moved)

    def _news(self, ids: list[UUID]) -> None:
        """A job has changed: if it is at work here, see whether it is still ours."""
        if any(id in self._attempts for id in ids):
            self._flush_now.set()

    async def _flush_loop(self) -> None:
        away = 0.5
        while True:
            asked = False
            with suppress(TimeoutError):
                async with asyncio.timeout(FLUSH):
                    await self._flush_now.wait()
                    asked = True
            self._flush_now.clear()
            try:
                if running := self._attempts.not_started(FLUSH / 2):
                    await self._start(running)
                await self._flush_reports()
                if asked:
                    self._attempts.lose(await self._lost())
                away = 0.5
            except HowdahError as error:
                if not transient(error):
                    raise
                away = min(away * 2, 5.0)
                _log.warning("flush.waiting retry_in=%.1fs error=%s", away, error)
                await asyncio.sleep(away)

    async def _start(self, running: list[tuple[Claim, float]]) -> None:
        """Mark attempts as running; one that cannot be marked runs all the same."""

        async def refused(one: tuple[Claim, float], error: Exception) -> None:
            _log.error("start.refused id=%s error=%s", one[0].id, describe(error))

        await write_in_parts(
            running,
            partial(store_run.start, self._store, self.id),
            lambda _part, _ids: None,
            refused,
        )

    async def _flush_reports(self) -> dict[tuple[UUID, int], str]:
        """Write what has gathered; returns why events of some attempts could not be stored."""
        if self._reports or self._flushing.locked():
            async with self._flushing:
                self._attempts.lose(await self._reports.flush(self._store, self.id))
        return self._reports.refused

    async def _lost(self) -> set[UUID]:
        held = self._attempts.held()
        async with self._store.acquire() as connection:
            return await store_run.beat(connection, self.id, held, self._silent_after, None)

    def _info(self) -> str:
        """Describe this worker for people; read by the heartbeat's thread."""
        return msgspec.json.encode(
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "version": VERSION,
                "python": platform.python_version(),
                "slots": self._concurrency,
                "threads": min(self._threads, self._concurrency),
                "threads_busy": self._attempts.in_threads,
                "thread_types": sorted(self._limited),
                "running": len(self._attempts),
                "job_types": self._intake.job_types,
                "leaving": self._stopping.is_set(),
                **({"held_up": held_up} if (held_up := self._heartbeat.held_up) else {}),
            }
        ).decode()
