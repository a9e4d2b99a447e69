"""Worker: claim → run → settle, joined.

One claim loop per process fills a small buffer; attempts run up to `concurrency` at once;
endings leave in batches; the beat has a thread of its own. This is the only place that knows
all the rooms. Every loop survives the database going away: it waits and tries again.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import secrets
import socket
import time
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

import msgspec

from howdah import payload
from howdah.behind import Behind
from howdah.buffer import HOLD, Buffer
from howdah.claim import Line, Look, claim, look_back
from howdah.errors import BadInput, HowdahError
from howdah.handler import Handler
from howdah.job import Claim
from howdah.observe.measures import Measures
from howdah.outcomes import Ending, Release
from howdah.run.attempts import Attempts
from howdah.run.heartbeat import Heartbeat
from howdah.run.reports import Reports
from howdah.run.strays import Strays
from howdah.settle import Settler
from howdah.states import State, Verb
from howdah.store import Store, call
from howdah.store.doorbell import Doorbell
from howdah.store.refusals import passing
from howdah.upkeep import Upkeep
from howdah.version import VERSION

_log = logging.getLogger("howdah.worker")

FLUSH = 0.2  # seconds between writes of progress, events and "running"
CLAIMING = "howdah-claim"
LAST_FLUSH = 15.0  # seconds to wait for the last endings to be written before giving up


def _new_name() -> str:
    """Name a worker so that nobody else has the name, and people can tell where it is."""
    return f"{socket.gethostname()[:60]}:{os.getpid()}:{secrets.token_hex(4)}"


class Worker:
    """Works on the jobs of one queue until it is stopped."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
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
    ) -> None:
        for name, number in (("concurrency", concurrency), ("batch_size", batch_size)):
            if not 1 <= number <= 10_000:
                raise BadInput(f"{name} lies between 1 and 10000, not {number}")
        for name, length in (("poll", poll), ("silent_after", silent_after)):
            if length <= timedelta():
                raise BadInput(f"{name} must be longer than nothing, not {length}")
            if length > timedelta(days=365):
                raise BadInput(f"{name} must be no longer than a year, not {length}")
        if worker_id is not None and not (len(worker_id) <= 200 and payload.is_text(worker_id)):
            raise BadInput(f"worker_id is text of 1 to 200 characters, not {worker_id[:300]!r}")
        taken = sorted(set(handlers if job_types is None else job_types))
        if unknown := set(taken) - set(handlers):
            raise BadInput(f"no function is registered for job type {min(unknown)!r}")
        if not taken:
            raise BadInput("this worker knows no job types: register functions with @queue.job")
        self.id: str = worker_id or _new_name()
        self._store = store
        self._handlers = {name: handlers[name] for name in taken}
        self._concurrency = concurrency
        self._processes = processes or os.cpu_count() or 1
        self._grace = grace.total_seconds()
        self._silent_after = silent_after
        self._line = Line(taken)
        self._buffer = Buffer(batch_size)
        self._reports = Reports()
        self._upkeep = Upkeep(store, self.id, every=upkeep_every, stale_after=stale_after)
        self._measures = Measures(store, self.id, self._drain)
        self._strays = Strays(store, self.id, self._known)
        self._behind = Behind(self._line, lambda n: self._claim(n, look_back), self._found_behind)
        self._doorbell = Doorbell(
            store, poll=poll.total_seconds(), knows=self._line.__contains__, news=self._news
        )
        self._stopping, self._hurry = asyncio.Event(), asyncio.Event()
        self._room, self._idle = asyncio.Event(), asyncio.Event()
        self._flush_now, self._flushing = asyncio.Event(), asyncio.Lock()
        self._started = False
        self._holding = False  # whether what is held is looked at again and again
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
        self._settler = Settler(
            self._store, self.id, self._flush_reports, self._unsure, self._settled
        )
        self._attempts = Attempts(
            self._handlers,
            self._reports,
            slots=self._concurrency,
            processes=self._processes,
            ended=self._ended,
            freed=self._fill,
            tracing=self._store.tracing,
        )
        self._heartbeat = Heartbeat(
            self._store,
            self.id,
            every=self._silent_after / 5,
            silent_after=self._silent_after,
            info=self._info,
            held=self._attempts.held,
            lost=self._attempts.lose,
        )
        try:
            if not await self._arrive():
                return
            await self._heartbeat.start()
            await self._doorbell.start()
        except asyncio.CancelledError:
            await self._turn_back()
            raise
        self._started = True
        for name, loop in (
            ("claim", self._claim_loop()),
            ("settle", self._settler.run()),
            ("flush", self._flush_loop()),
            ("upkeep", self._upkeep.run()),
            ("measures", self._measures.run()),
        ):
            self._go(name, loop)
        _log.info(
            "worker.started id=%s types=%s concurrency=%d listens=%s",
            self.id,
            ",".join(self._line.job_types),
            self._concurrency,
            self._doorbell.hears,
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
                    await call.beat(connection, self.id, [], self._silent_after, self._info())
            except HowdahError as error:
                if not passing(error):
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
        await self._doorbell.stop()
        await self._heartbeat.stop()
        with suppress(HowdahError, TimeoutError):
            async with asyncio.timeout(2):
                await call.leave(self._store, self.id)

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
            self._idle.set()

    async def run(self) -> None:
        """Work until `shut_down` is called, or something is wrong for good."""
        async with self:
            await self.stopping()

    async def stopping(self) -> None:
        """Wait, once started, for `shut_down`, or for something that is wrong for good."""
        await self._stopping.wait()

    async def run_until_idle(self) -> None:
        """Work until nothing is left that could be done now: for scripts and tests."""
        self._idle.clear()
        self._doorbell.ring()
        await self._idle.wait()
        if self._failure is not None:
            raise self._failure

    @property
    def free_slots(self) -> int:
        """How many more jobs this worker could start now."""
        return self._attempts.free

    def shut_down(self) -> None:
        """Ask the worker to stop; asked again, to stop at once. For signal handlers."""
        if self._stopping.is_set():
            self._hurry.set()
        self._stopping.set()
        self._room.set()
        self._doorbell.ring()

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
        claiming = [task for task in self._tasks if task.get_name() == CLAIMING]
        await asyncio.wait([*claiming, *self._behind.tasks], timeout=5)
        self._release(self._buffer.empty())
        await self._attempts.drained(self._grace, self._hurry)
        self._attempts.release_all()
        await self._attempts.drained(2.0, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_FLUSH):
                await self._settler.flushed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self._doorbell.stop()
        await self._heartbeat.stop()
        await self._attempts.close()
        with suppress(HowdahError, TimeoutError):
            async with asyncio.timeout(5):
                if self._strays.due_in(time.monotonic()) is not None:
                    await self._strays.look()
                await self._measures.step()
                if not self._settler.held():  # else others must notice that it is silent
                    await call.leave(self._store, self.id)
        _log.info(
            "worker.stopped id=%s settled=%d stale=%d",
            self.id,
            self._settler.settled,
            self._settler.stale,
        )

    # ── claim ─────────────────────────────────────────────────────────────────────────────

    async def _claim_loop(self) -> None:
        wait = 0.05
        only: list[str] = []  # the types that the doorbell named
        while not self._stopping.is_set():
            want = self._buffer.wanted(self._attempts.free)
            if not want:
                only = []
                self._room.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._strays.due_in(time.monotonic())):
                        await self._room.wait()
            try:
                if self._strays.due_in(time.monotonic()) == 0:
                    await self._behind.ended()  # what it has taken would look like strays
                    await self._strays.look()
                if not want:
                    continue
                self._behind.begin(idle=False)
                claims = await self._claim(want, partial(claim, only=only))
                wait = 0.05
            except HowdahError as error:
                if not passing(error):
                    raise
                _log.warning("claim.waiting retry_in=%.2fs error=%s", wait, error)
                only = []
                await self._doorbell.nap(wait)
                wait = min(wait * 2, 5.0)
                continue
            self._take(claims)
            if len(claims) == want:
                only = []
                await self._doorbell.found_enough()
            else:
                self._behind.begin(idle=True)
                if not only:
                    await self._settle_down(found=bool(claims))
                only = await self._doorbell.wait()

    async def _claim(self, want: int, look: Look) -> list[Claim]:
        """Claim so many; an answer that is lost, or comes too late to be true, leaves strays."""
        sent = time.monotonic()
        try:
            claims = await look(self._store, self.id, want, self._line)
        except HowdahError:
            self._strays.suspect(time.monotonic())
            raise
        took = time.monotonic() - sent
        if took > self._silent_after.total_seconds():
            self._strays.suspect(time.monotonic())
            return []
        if look is not look_back:
            self._buffer.claimed(took)
        if claims:
            self._measures.claimed(claims[0].claimed_at.timestamp(), sent)
        return claims

    def _take(self, claims: list[Claim]) -> None:
        if claims:
            self._buffer.put(claims, time.monotonic())
            self._fill()
            if not self._holding:
                self._look_at_held()

    def _found_behind(self, claims: list[Claim]) -> None:
        """Take what a look back found; where some were left out there may be more."""
        self._take(claims)
        if claims:
            self._doorbell.ring()

    def _settled(
        self,
        verb: Verb,
        endings: Sequence[Ending],
        moved: dict[UUID, State | None],
        taken_up: float,
    ) -> None:
        """Endings were written down: what was handed back may stand before the line's marks."""
        self._measures.settled(verb, endings, moved, taken_up)
        if verb is Verb.RELEASE and any(type(one.outcome) is Release for one in endings):
            self._line.look_back_soon()
            self._doorbell.ring()

    def _known(self) -> set[tuple[UUID, int]]:
        """Return every attempt that is in our hands, as far as we know."""
        return {*self._attempts.held(), *self._buffer.held(), *self._settler.held()}

    def _unsure(self) -> bool:
        """A release got no answer: look for strays instead, unless there are no more claims."""
        self._strays.suspect(time.monotonic())
        self._room.set()
        return not self._stopping.is_set()

    def _fill(self) -> None:
        """Start buffered jobs while there are free slots, and ask for more when they run low."""
        if self._stopping.is_set():
            self._release(self._buffer.empty())
            return
        buffer, attempts = self._buffer, self._attempts
        while (free := attempts.free) > 0 and len(buffer):
            for one in buffer.get(free):
                attempts.start(one)
        if buffer.wanted(free):
            self._room.set()

    async def _settle_down(self, found: bool) -> None:
        """Notice that there is nothing left to do."""
        if not self._behind.nothing:
            return
        if not found and not self._attempts and not self._buffer:
            unwritten = bool(self._settler.held())
            await self._settler.flushed()
            if unwritten:
                self._doorbell.ring()  # what was written down may have put a job back in line
            elif not self._attempts and not self._buffer:
                self._idle.set()

    def _release(self, claims: list[Claim]) -> None:
        for one in claims:
            self._settler.add(Ending(one, Release()))

    def _look_at_held(self) -> None:
        """Hand back what is held for too long; while something is held, look again soon."""
        self._release(self._buffer.held_too_long(time.monotonic()))
        self._holding = bool(self._buffer)
        if self._holding:
            asyncio.get_running_loop().call_later(HOLD / 4, self._look_at_held)

    # ── run and report ────────────────────────────────────────────────────────────────────

    def _ended(self, ending: Ending) -> None:
        self._settler.add(ending)
        self._buffer.ended(ending.ended or time.monotonic())

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
                    await call.start(self._store, self.id, running)
                await self._flush_reports()
                if asked:
                    self._attempts.lose(await self._lost())
                away = 0.5
            except HowdahError as error:
                if not passing(error):
                    raise
                away = min(away * 2, 5.0)
                _log.warning("flush.waiting retry_in=%.1fs error=%s", away, error)
                await asyncio.sleep(away)

    async def _flush_reports(self) -> None:
        if not self._reports and not self._flushing.locked():
            return
        async with self._flushing:
            self._attempts.lose(await self._reports.flush(self._store, self.id))

    async def _lost(self) -> set[UUID]:
        held = self._attempts.held()
        async with self._store.acquire() as connection:
            return await call.beat(connection, self.id, held, self._silent_after, None)

    def _info(self) -> str:
        """Describe this worker for people; read by the heartbeat's thread."""
        return msgspec.json.encode(
            {
                "host": socket.gethostname(),
                "pid": os.getpid(),
                "version": VERSION,
                "python": platform.python_version(),
                "slots": self._concurrency,
                "running": len(self._attempts),
                "job_types": self._line.job_types,
                "leaving": self._stopping.is_set(),
            }
        ).decode()
