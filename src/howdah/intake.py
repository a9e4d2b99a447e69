"""Intake: bring jobs in, as many as can soon start, and none for long.

Comes after   claim, behind   which take jobs from the line
Comes before  run/            which starts them; settle, which hands back what cannot start

One claim loop per process fills a small buffer, and free slots empty it. It sleeps at the doorbell
when there is nothing to do, and survives the database going away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

from howdah.behind import Behind
from howdah.buffer import HOLD, Buffer
from howdah.claim import FEW, Line, Look, claim, fail_unreadable, look_back
from howdah.errors import HowdahError
from howdah.job import Claim
from howdah.logs import log_named
from howdah.observe.measures import Measures
from howdah.outcomes import Ending, Release
from howdah.run.attempts import Attempts
from howdah.run.strays import Strays
from howdah.settle import Settler
from howdah.states import Verb
from howdah.store import Store
from howdah.store.doorbell import Doorbell
from howdah.store.refusals import passing

_log = log_named("howdah.worker")

LOOK_AGAIN = 0.5  # seconds at most, while something may stand behind the marks of a slow line


class Intake:
    """Claims jobs for one worker and starts them, until it is told to stop."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        job_types: Sequence[str],
        measures: Measures,
        *,
        batch_size: int,
        poll: timedelta,
        silent_after: timedelta,
        news: Callable[[list[UUID]], None],
        due: Callable[[str], None],
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._measures = measures
        self._silent_after = silent_after.total_seconds()
        self._line = Line(job_types)
        self._buffer = Buffer(batch_size)
        self._strays = Strays(store, worker_id, self._known)
        self._behind = Behind(self._line, lambda n: self._claim(n, look_back), self._found_behind)
        self._doorbell = Doorbell(
            store, poll=poll.total_seconds(), knows=self._line.__contains__, news=news, due=due
        )
        self._stopping = False
        self._room = asyncio.Event()
        self.idle: asyncio.Event = asyncio.Event()  # nothing is left that could be done now
        self._looked_since = False  # whether a look at everything began since that was asked
        self._holding = False  # whether what is held is looked at again and again

    def serve(self, attempts: Attempts, settler: Settler) -> None:
        """Say who runs the jobs and who hands them back."""
        self._attempts = attempts
        self._settler = settler

    @property
    def job_types(self) -> list[str]:
        return self._line.job_types

    @property
    def hears(self) -> bool:
        """Whether the database tells us when there are jobs."""
        return self._doorbell.hears

    async def listen(self) -> None:
        await self._doorbell.start()

    async def close(self) -> None:
        await self._doorbell.stop()

    async def until_idle(self) -> None:
        """Wait until a look that begins from now on finds nothing left to do."""
        self.idle.clear()
        self._looked_since = False
        self._doorbell.ring()
        await self.idle.wait()

    def stop(self) -> None:
        """Claim no more."""
        self._stopping = True
        self._room.set()
        self._doorbell.ring()

    async def ended(self) -> None:
        """Wait for what a look back takes that is on its way now, and hand everything back."""
        if self._behind.tasks:
            await asyncio.wait(self._behind.tasks, timeout=5)
        self._release(self._buffer.empty())

    async def look_for_strays(self) -> None:
        """See to those that are suspected, however long ago."""
        if self._strays.due_in(time.monotonic()) is not None:
            await self._strays.look()

    async def run(self) -> None:
        """Claim until told to stop."""
        wait = 0.05
        only: list[str] = []  # the types that the doorbell named
        while not self._stopping:
            want = self._wanted()
            if only:
                want = min(want, FEW)
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
                self._looked_since = self._looked_since or not only
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
            if only:
                await asyncio.sleep(0)  # what it was woken for begins before all else
            if len(claims) == want:
                only = []
                await self._doorbell.found_enough()
            else:
                self._behind.begin(idle=True)
                if not only:
                    await self._settle_down(found=bool(claims))
                # a look back that is still to come must not wait for a seldom poll
                only = await self._doorbell.wait(None if self._behind.nothing else LOOK_AGAIN)

    async def _claim(self, want: int, look: Look) -> list[Claim]:
        """Claim so many; an answer that is lost, or comes too late to be true, leaves strays."""
        while True:
            sent = time.monotonic()
            try:
                claims = await look(self._store, self._worker_id, want, self._line)
                break
            except HowdahError as refused:
                self._strays.suspect(time.monotonic())
                if not await fail_unreadable(self._store, self._worker_id, self.job_types, refused):
                    raise
        took = time.monotonic() - sent
        if took > self._silent_after:
            self._strays.suspect(time.monotonic())
            return []
        if look is not look_back:
            self._buffer.claimed(took)
        if claims:
            self._measures.claimed(claims[0].claimed_at, sent)
        return claims

    async def _settle_down(self, found: bool) -> None:
        """Notice that there is nothing left to do."""
        if not self._behind.nothing or not self._looked_since:
            return
        if not found and not self._attempts and not self._buffer:
            unwritten = bool(self._settler.held())
            await self._settler.flushed()
            if unwritten:
                self._doorbell.ring()  # what was written down may have put a job back in line
            elif not self._attempts and not self._buffer:
                self.idle.set()

    # ── held ready ────────────────────────────────────────────────────────────────────────

    def fill(self) -> None:
        """Start buffered jobs while there are free slots, and ask for more when they run low."""
        if self._stopping:
            self._release(self._buffer.empty())
            return
        buffer, attempts = self._buffer, self._attempts
        while (free := attempts.free) > 0 and len(buffer):
            for one in buffer.get(free):
                attempts.start(one)
        if self._wanted():
            self._room.set()

    def _wanted(self) -> int:
        """How many jobs to claim now: none while too many endings wait to be written down."""
        return 0 if self._settler.behind else self._buffer.wanted(self._attempts.free)

    def holds(self) -> bool:
        """Whether claimed jobs are held that have still to run."""
        return bool(self._buffer)

    def job_ended(self, ending: Ending) -> None:
        """Count a job that ended: the rate says how many to hold ready."""
        self._buffer.ended(ending.ended or time.monotonic())

    def _take(self, claims: list[Claim]) -> None:
        if claims:
            self._buffer.put(claims, time.monotonic())
            self.fill()
            if not self._holding:
                self._look_at_held()

    def _found_behind(self, claims: list[Claim]) -> None:
        """Take what a look back found; where some were left out there may be more."""
        self._take(claims)
        if claims:
            self._doorbell.ring()

    def _look_at_held(self) -> None:
        """Hand back what is held for too long; while something is held, look again soon."""
        self._release(self._buffer.held_too_long(time.monotonic()))
        self._holding = bool(self._buffer)
        if self._holding:
            asyncio.get_running_loop().call_later(HOLD / 4, self._look_at_held)

    def _release(self, claims: list[Claim]) -> None:
        for one in claims:
            self._settler.add(Ending(one, Release()))

    # ── what was written down, or was not ─────────────────────────────────────────────────

    def settled(self, verb: Verb, endings: Sequence[Ending]) -> None:
        """Endings were written down: there may be room for more jobs.

        What was handed back may stand before the line's marks.
        """
        if verb is Verb.RELEASE and any(type(one.outcome) is Release for one in endings):
            self._line.look_back_soon()
            self._doorbell.ring()
        if self._wanted():
            self._room.set()

    def unsure(self) -> bool:
        """A release got no answer: look for strays instead, unless there are no more claims."""
        self._strays.suspect(time.monotonic())
        self._room.set()
        return not self._stopping

    def _known(self) -> set[tuple[UUID, int]]:
        """Return every attempt that is in our hands, as far as we know."""
        return {*self._attempts.held(), *self._buffer.held(), *self._settler.held()}
