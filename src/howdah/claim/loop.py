"""Intake: bring jobs in, as many as can soon start, and none for long.

Comes after   claim, behind   which take jobs from the line
Comes before  run/            which starts them; settle, which hands back what cannot start

One claim loop per process fills a small buffer, and free slots empty it. It sleeps at the doorbell
when there is nothing to do, and survives the database going away.

Types that run in threads have a limit of their own. Where it is lower than the number of slots,
they and all others are claimed apart, each as many as can start: what waits for a thread waits in
the database, and keeps nobody else from a slot. The two take turns when slots are scarce.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

from howdah.claim.buffer import HOLD, Buffer
from howdah.claim.claim import FEW, Line, Look, claim, fail_unreadable, look_back
from howdah.claim.rescan import Rescan
from howdah.claim.unacknowledged import UnacknowledgedClaims
from howdah.errors import HowdahError
from howdah.job import Claim
from howdah.outcomes import Ending, Release
from howdah.run.executor import Executor
from howdah.run.measures import Measures
from howdah.safe_logging import log_named
from howdah.settle import Settler
from howdah.states import Verb
from howdah.store import Store
from howdah.store.errors import transient
from howdah.store.wakeup import Wakeup

_log = log_named("howdah.worker")

LOOK_AGAIN = 0.5  # seconds at most, while something may stand behind the marks of a slow line


class _TypeGroup:
    """Job types that share a limit: their line, and their jobs that are held ready."""

    def __init__(
        self,
        job_types: Sequence[str],
        batch_size: int,
        room: Callable[[], int],
        claim: Callable[[_TypeGroup, int, Look], Awaitable[list[Claim]]],
        found: Callable[[list[Claim]], None],
    ) -> None:
        self.line = Line(job_types)
        self.buffer = Buffer(batch_size)
        self.room = room  # how many more of them could start now
        self.behind = Rescan(self.line, lambda n: claim(self, n, look_back), found)

    def among(self, job_types: Sequence[str]) -> list[str]:
        """Return which of these types it has."""
        return [name for name in job_types if name in self.line]


class ClaimLoop:
    """Claims jobs for one worker and starts them, until it is told to stop."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        job_types: Sequence[str],
        limited: Collection[str],
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
        self.job_types: list[str] = sorted(set(job_types))
        in_threads = [name for name in self.job_types if name in limited]
        others = [name for name in self.job_types if name not in limited]
        self._groups = [
            _TypeGroup(types, batch_size, room, self._claim, self._found_behind)
            for types, room in (
                (others, lambda: self._attempts.free),
                (in_threads, lambda: self._attempts.free_in_threads),
            )
            if types
        ]
        self._group_of = {name: group for group in self._groups for name in group.line.job_types}
        self._left_out: set[_TypeGroup] = set()  # not asked for, because none could start then
        self._strays = UnacknowledgedClaims(store, worker_id, self._known)
        self._doorbell = Wakeup(
            store, poll=poll.total_seconds(), knows=self._group_of.__contains__, news=news, due=due
        )
        self._stopping = False
        self._room = asyncio.Event()
        self.idle: asyncio.Event = asyncio.Event()  # nothing is left that could be done now
        self._looked_since = False  # whether a look at everything began since that was asked
        self._holding = False  # whether what is held is looked at again and again

    def serve(self, attempts: Executor, settler: Settler) -> None:
        """Say who runs the jobs and who hands them back."""
        self._attempts = attempts
        self._settler = settler

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
        if looks := [task for group in self._groups for task in group.behind.tasks]:
            await asyncio.wait(looks, timeout=5)
        self._release_held()

    async def release_unacknowledged(self) -> None:
        """See to those that are suspected, however long ago."""
        if self._strays.due_in(time.monotonic()) is not None:
            await self._strays.look()

    async def run(self) -> None:
        """Claim until told to stop."""
        wait = 0.05
        only: list[str] = []  # the types that the doorbell named
        while not self._stopping:
            groups = self._to_ask(only)
            if not groups and only and self._wanted():
                only = await self._doorbell.wait()  # there is room, but not for those it named
                continue
            if not groups:
                only = []
                self._room.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._strays.due_in(time.monotonic())):
                        await self._room.wait()
            try:
                if self._strays.due_in(time.monotonic()) == 0:
                    for group in self._groups:
                        await group.behind.ended()  # what it has taken would look like strays
                    await self._strays.look()
                if not groups:
                    continue
                self._looked_since = self._looked_since or not only
                enough, found = await self._ask(groups, only)
                wait = 0.05
            except HowdahError as error:
                if not transient(error):
                    raise
                _log.warning("claim.waiting retry_in=%.2fs error=%s", wait, error)
                only = []
                await self._doorbell.sleep(wait)
                wait = min(wait * 2, 5.0)
                continue
            if only:
                await asyncio.sleep(0)  # what it was woken for begins before all else
            if enough or self._may_ask():
                only = []
                await self._doorbell.found_enough()
            else:
                for group in groups:
                    group.behind.begin(idle=True)
                if not only:
                    await self._settle_down(found)
                # a look back that is still to come must not wait for a seldom poll
                only = await self._doorbell.wait(None if self._nothing_behind else LOOK_AGAIN)

    def _to_ask(self, only: Sequence[str]) -> list[_TypeGroup]:
        """Choose what to claim now, of these types alone if any are named; in turns."""
        if len(self._groups) == 1:
            return self._groups if self._wanted() else []
        self._groups.reverse()
        groups: list[_TypeGroup] = []
        for group in self._groups:
            if self._want(group):
                if not only or group.among(only):
                    groups.append(group)
            else:
                self._left_out.add(group)
        return groups

    async def _ask(self, groups: list[_TypeGroup], only: Sequence[str]) -> tuple[bool, bool]:
        """Claim and start; returns whether there may be more, and whether anything was found."""
        enough = found = False
        for group in groups:
            want = self._want(group)  # anew: what was claimed before it may have taken the slots
            if only:
                want = min(want, FEW)
            if not want:
                self._left_out.add(group)
                continue
            group.behind.begin(idle=False)
            claims = await self._claim(group, want, partial(claim, only=group.among(only)))
            if not only:
                self._left_out.discard(group)
            self._take(claims)
            enough = enough or len(claims) == want
            found = found or bool(claims)
        return enough, found

    def _may_ask(self) -> bool:
        """Whether there is room again for what was left out."""
        return any(self._want(group) for group in self._left_out)

    @property
    def _nothing_behind(self) -> bool:
        return all(group.behind.nothing for group in self._groups)

    async def _claim(self, group: _TypeGroup, want: int, look: Look) -> list[Claim]:
        """Claim so many; an answer that is lost, or comes too late to be true, leaves strays."""
        while True:
            sent = time.monotonic()
            try:
                claims = await look(self._store, self._worker_id, want, group.line)
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
            group.buffer.claimed(took)
        if claims:
            self._measures.claimed(claims[0].claimed_at, sent)
        return claims

    async def _settle_down(self, found: bool) -> None:
        """Notice that there is nothing left to do."""
        if not self._nothing_behind or self._left_out or not self._looked_since:
            return
        if not found and not self._attempts and not self.holds():
            unwritten = bool(self._settler.held())
            await self._settler.flushed()
            if unwritten:
                self._doorbell.ring()  # what was written down may have put a job back in line
            elif not self._attempts and not self.holds():
                self.idle.set()

    # ── held ready ────────────────────────────────────────────────────────────────────────

    def fill(self) -> None:
        """Start buffered jobs while there are free slots, and ask for more when they run low."""
        if self._stopping:
            self._release_held()
            return
        attempts = self._attempts
        for group in self._by_urgency():
            buffer, room = group.buffer, group.room
            while len(buffer) and (free := room()) > 0:
                for one in buffer.get(free):
                    attempts.start(one)
        self._tell_room()

    def _tell_room(self) -> None:
        """Let the claim loop go on if it waits, and something could be claimed."""
        if self._wanted():
            self._room.set()
        if self._left_out and self._may_ask():
            self._doorbell.ring()

    def _by_urgency(self) -> list[_TypeGroup]:
        """Return what is held ready, the more urgent first."""
        if len(self._groups) == 1:
            return self._groups
        held = [group for group in self._groups if len(group.buffer)]
        return sorted(held, key=lambda group: group.buffer.first)

    def _want(self, group: _TypeGroup) -> int:
        """How many jobs to claim now: none while too many endings wait to be written down."""
        return 0 if self._settler.behind else group.buffer.wanted(group.room())

    def _wanted(self) -> bool:
        return any(self._want(group) for group in self._groups)

    def holds(self) -> bool:
        """Whether claimed jobs are held that have still to run."""
        return any(len(group.buffer) for group in self._groups)

    def job_ended(self, ending: Ending) -> None:
        """Count a job that ended: the rate says how many to hold ready."""
        group = self._group_of[ending.claim.job_type]
        group.buffer.ended(ending.ended or time.monotonic())

    def _take(self, claims: list[Claim]) -> None:
        if claims:
            group = self._group_of[claims[0].job_type]  # they come from one
            group.buffer.put(claims, time.monotonic())
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
        for group in self._groups:
            self._release(group.buffer.held_too_long(time.monotonic()))
        self._holding = self.holds()
        if self._holding:
            asyncio.get_running_loop().call_later(HOLD / 4, self._look_at_held)

    def _release_held(self) -> None:
        for group in self._groups:
            self._release(group.buffer.empty())

    def _release(self, claims: list[Claim]) -> None:
        for one in claims:
            self._settler.add(Ending(one, Release()))

    # ── what was written down, or was not ─────────────────────────────────────────────────

    def settled(self, verb: Verb, endings: Sequence[Ending]) -> None:
        """Endings were written down: there may be room for more jobs.

        What was handed back may stand before the line's marks.
        """
        if verb is Verb.RELEASE and any(type(one.outcome) is Release for one in endings):
            for group in self._groups:
                group.line.look_back_soon()
            self._doorbell.ring()
        self._tell_room()

    def unsure(self) -> bool:
        """A release got no answer: look for strays instead, unless there are no more claims."""
        self._strays.suspect(time.monotonic())
        self._room.set()
        return not self._stopping

    def _known(self) -> set[tuple[UUID, int]]:
        """Return every attempt that is in our hands, as far as we know."""
        held = (lease for group in self._groups for lease in group.buffer.held())
        return {*self._attempts.held(), *held, *self._settler.held()}
