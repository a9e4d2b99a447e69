"""Processes: functions in processes of their own, which can really be stopped.

A child is started when it is first needed and serves one job after another; its minder keeps it
busy. A job that times out or is lost takes its child with it (SIGKILL), and no other job; the next
gets a new one. Jobs travel as JSON; child.py is the other end. Where children die one after another
and end no job, new ones are started more and more slowly.
"""

from __future__ import annotations

import asyncio
from collections import deque

from howdah.handler import Handler
from howdah.job import Claim
from howdah.run.process import protocol
from howdah.run.process.import_check import module_name
from howdah.run.process.supervisor import Supervisor
from howdah.run.process.task import ProcessTask, Report

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # seconds before a child, after others that ended no job


class ProcessPool:
    """A pool of child processes, at most `size` of them."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting: deque[ProcessTask] = deque()
        self._minders: list[Supervisor] = []
        self._lives: set[asyncio.Task[None]] = set()  # of every child, also before and after
        self._fruitless = 0  # children in a row that ended no job
        self._pause: asyncio.TimerHandle | None = None  # before the next child
        self._closed = False
        self._loop = asyncio.get_running_loop()

    async def run(
        self, handler: Handler, claim: Claim, report: Report, timeout: float | None
    ) -> protocol.Ended:
        """Run one job in a child; when time is up, or this is cancelled, the child is killed."""
        function = handler.function
        packet = protocol.encode(protocol.Do(module_name(function), function.__qualname__, claim))
        errand = ProcessTask(packet, report, timeout, self._loop.create_future())
        self._waiting.append(errand)
        self._give_out()
        try:
            return await errand.ending
        except asyncio.CancelledError:
            await errand.cancelled()
            raise

    async def close(self) -> None:
        self._closed = True
        if self._pause is not None:
            self._pause.cancel()
        for life in self._lives:
            life.cancel()
        await asyncio.gather(*self._lives, return_exceptions=True)

    def _take(self, back: list[ProcessTask]) -> None:
        """Take errands back from a child; they stay before all others."""
        self._waiting.extendleft(reversed(back))
        self._give_out()

    def _give_out(self) -> None:
        """Give waiting errands to children while one has room, the idlest first."""
        while self._waiting and not self._closed:
            if self._waiting[0].ending.done():  # cancelled while it waited
                self._waiting.popleft()
                continue
            minder = self._idlest()
            if minder is None or minder.load:
                self._grow()
            if minder is None or not minder.give(self._waiting[0]):
                return
            self._waiting.popleft()

    def _idlest(self) -> Supervisor | None:
        idlest: Supervisor | None = None
        for minder in self._minders:
            if minder.has_room and (idlest is None or minder.load < idlest.load):
                idlest = minder
        return idlest

    def _grow(self) -> None:
        """Start children for those who wait, as many as there may be."""
        while len(self._lives) < self._size and self._pause is None:
            if len(self._lives) - len(self._minders) >= len(self._waiting):
                return
            life = self._loop.create_task(self._live())
            self._lives.add(life)
            life.add_done_callback(self._ended)

    def _ended(self, life: asyncio.Task[None]) -> None:
        self._lives.discard(life)
        self._give_out()

    def _learn(self, fruitless: bool) -> None:
        """Learn how a child fared; pause before the next after several that ended no job."""
        self._fruitless = self._fruitless + 1 if fruitless else 0
        if self._fruitless > 1 and self._pause is None and not self._closed:
            doublings = min(self._fruitless - 2, 10)
            seconds = min(FIRST_PAUSE * 2**doublings, LONGEST_PAUSE)
            self._pause = self._loop.call_later(seconds, self._go_on)

    def _go_on(self) -> None:
        self._pause = None
        self._give_out()

    async def _live(self) -> None:
        """The life of one child. One that cannot start costs the first who waits an attempt."""
        minder: Supervisor | None = None
        try:
            minder = Supervisor(self._take)
            await minder.ready()
            self._minders.append(minder)
            self._give_out()
            await minder.gone()
        except Exception as error:
            if (first := next((e for e in self._waiting if not e.ending.done()), None)) is not None:
                first.end(error)
        finally:
            if minder is not None:
                minder.kill()
                await minder.gone()
                if minder in self._minders:
                    self._minders.remove(minder)
            self._learn(minder is None or minder.fruitless)
