"""ClaimLoop: claim as many jobs as can soon start, and start them as slots become free.

Comes after   claim.py  one claim
Comes before  run/      which runs the jobs; settle, which releases those that cannot start

One loop per worker fills a small buffer, and free slots empty it. It sleeps until it is woken
(store/wakeup.py) when there is nothing to claim, and it survives a database that is away.

Job types that run in threads have a limit of their own. If it is lower than the number of slots,
they and all other types are claimed in separate calls, each as many as can start. A job that needs
a thread then waits in the database and takes no slot from another job. The two groups take turns
when slots are few.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

from howdah.claim.buffer import HOLD, Buffer
from howdah.claim.claim import FEW, claim, claim_rescan, fail_unreadable
from howdah.claim.line import Line
from howdah.claim.rescan import Rescan
from howdah.claim.run_claims import RunClaims
from howdah.claim.unacknowledged import UnacknowledgedClaims
from howdah.errors import HowdahError
from howdah.growing_pause import GrowingPause
from howdah.in_hand import InHand
from howdah.job import Claim
from howdah.outcomes import Ending, Release
from howdah.run.executor import Attempt, Executor
from howdah.run.measures import Measures
from howdah.safe_logging import log_named
from howdah.settle import CompleteAndClaim
from howdah.store import Store
from howdah.store import admit as store_admit
from howdah.store.errors import transient
from howdah.store.wakeup import Wakeup

_log = log_named("howdah.worker")

LAST_CLAIM = 5.0  # seconds to wait for a claim that is under way when the worker stops
LOOK_AGAIN = 0.04  # seconds after which a line that was empty may have jobs of other types
_SOON = timedelta(milliseconds=20)  # somebody had locked a row: the look is repeated
RESCAN_WAIT = 0.5  # seconds at most between two claims while a rescan is still to come


class _TypeGroup:
    """Job types that share a limit: their line, and their jobs that are ready to start."""

    def __init__(
        self,
        job_types: Sequence[str],
        batch_size: int,
        free: Callable[[], int],
        ended: Callable[[], int],
        rescan: Callable[[_TypeGroup, int], Awaitable[list[Claim]]],
        on_rescan: Callable[[list[Claim]], None],
    ) -> None:
        self.line = Line(job_types)
        self.buffer = Buffer(batch_size)
        self.free = free  # how many more of them could start now
        self.ended = ended  # how many of them have ended so far
        self.rescan = Rescan(self.line, partial(rescan, self), on_rescan)

    def among(self, job_types: Sequence[str]) -> list[str]:
        """Return which of these types belong to the group."""
        return [name for name in job_types if name in self.line]


class ClaimLoop:
    """Claims jobs for one worker and starts them, until it is stopped."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        job_types: Sequence[str],
        limited: Collection[str],
        ordered: Collection[str],
        in_hand: InHand[Attempt],
        executor: Executor,
        unacknowledged: UnacknowledgedClaims,
        measures: Measures,
        *,
        batch_size: int,
        poll: timedelta,
        silent_after: timedelta,
        on_change: Callable[[list[UUID]], None],
        on_due: Callable[[str], None],
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._in_hand = in_hand
        self._executor = executor
        self._unacknowledged = unacknowledged
        self._measures = measures
        self._silent_after = silent_after.total_seconds()
        self.job_types: list[str] = sorted(set(job_types))
        in_threads = [name for name in self.job_types if name in limited]
        others = [name for name in self.job_types if name not in limited]

        def ended_elsewhere() -> int:
            return in_hand.ended - (in_hand.ended_in_threads if in_threads else 0)

        self._groups = [
            _TypeGroup(types, batch_size, free, ended, self._rescan, self._take_rescanned)
            for types, free, ended in (
                (others, lambda: in_hand.free, ended_elsewhere),
                (
                    in_threads,
                    lambda: in_hand.free_in_threads,
                    lambda: in_hand.ended_in_threads,
                ),
            )
            if types
        ]
        self._group_of = {name: group for group in self._groups for name in group.line.job_types}
        self._left_out: set[_TypeGroup] = set()  # not claimed, because none could start then
        self._wakeup = Wakeup(
            store,
            poll=poll.total_seconds(),
            knows=self._group_of.__contains__,
            news=on_change,
            due=on_due,
        )
        self._loop_ended = asyncio.Event()
        self._room = asyncio.Event()
        self.idle: asyncio.Event = asyncio.Event()  # nothing is left that could be done now
        self._idle_wanted = False  # whether `until_idle` waits
        self._scanned_since = False  # whether a claim of every type began since then
        self._waits = False  # whether the loop waits for jobs
        self._asked = 0  # how many jobs the claim that is under way has asked for
        self._empty_at = (
            -math.inf
        )  # when a claim of all types emptied the line; it has not filled since
        self._along = 0  # how many jobs may come with the answers to endings
        self._along_ended = asyncio.Event()
        self._along_ended.set()
        self._checking_age = False  # whether the age of buffered jobs is checked again and again
        in_hand.ready.extend(group.buffer for group in self._groups)
        in_hand.on_room = self.start_ready
        self._run_claims = RunClaims(
            store,
            worker_id,
            ordered,
            in_hand,
            unacknowledged,
            batch_size=batch_size,
            silent_after=self._silent_after,
            on_claimed=self._take,
            on_refused=self._release,
        )

    @property
    def hears(self) -> bool:
        """Whether the database notifies this worker of new jobs."""
        return self._wakeup.is_listening

    @property
    def ahead(self) -> int:
        """How many jobs it claims before a slot is free for them. Safe in any thread."""
        return sum(group.buffer.ahead for group in self._groups)

    async def listen(self) -> None:
        await self._wakeup.start()

    async def close(self) -> None:
        await self._wakeup.stop()

    async def until_idle(self) -> None:
        """Wait until a claim that begins from now on finds nothing left to do."""
        self.idle.clear()
        self._idle_wanted, self._scanned_since = True, False
        for group in self._groups:
            group.line.rescan_soon()
        self.wake()
        await self.idle.wait()
        self._idle_wanted = False

    def wake(self) -> None:
        """Claim at once if the loop sleeps."""
        self._wakeup.wake()

    def stop(self) -> None:
        """Claim no more."""
        self._in_hand.claiming = False
        self._room.set()
        self.wake()

    async def ended(self) -> None:
        """Wait for a claim that is under way, and release every job that has not started."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_CLAIM):
                await self._loop_ended.wait()
        if rescans := [task for group in self._groups for task in group.rescan.tasks]:
            await asyncio.wait(rescans, timeout=LAST_CLAIM)
        await self._run_claims.ended(LAST_CLAIM)
        self._release_ready()

    async def run(self) -> None:
        """Claim until stopped."""
        try:
            await self._run()
        finally:
            self._loop_ended.set()

    async def _run(self) -> None:
        pause = GrowingPause(0.05, 5.0, self._store.reachable)
        only: list[str] = []  # the types that the loop was woken for; none: all
        while self._in_hand.claiming:
            groups = self._to_claim(only)
            if not groups and only and self._wanted():
                only = await self._wakeup.wait()  # slots are free, but not for those types
                continue
            if not groups:
                only = []
                await self._wait_for_room()
            try:
                if self._unacknowledged.due_in() == 0:
                    for group in self._groups:
                        await group.rescan.ended()  # its jobs would look unknown
                    await self._along_ended.wait()
                    async with self._run_claims.under_way:
                        await self._unacknowledged.release_unknown()
                if not groups:
                    continue
                self._scanned_since = self._scanned_since or not only
                written_before = self._in_hand.batches_written
                enough, found = await self._claim_and_start(groups, only)
                pause.reset()
            except HowdahError as error:
                if not transient(error):
                    raise
                seconds = pause.next()
                _log.warning("claim.waiting retry_in=%.2fs error=%s", seconds, error)
                only = []
                await self._wakeup.sleep_until_reachable(seconds)
                continue
            if only:
                await asyncio.sleep(0)  # the jobs that it was woken for begin before all else
            if enough or self._may_claim_left_out():
                only = []
                self._empty_at = -math.inf
                await self._wakeup.claimed_in_full()
            else:
                for group in groups:
                    group.rescan.start_if_due(idle=True)
                if not only:
                    await self._notice_idle(found, written_before)
                if not only:
                    self._empty_at = time.monotonic()
                self._waits = True
                # while a rescan is still to come, a long poll is too long
                only = await self._wakeup.wait(None if self._rescans_found_nothing else RESCAN_WAIT)
                self._waits = False

    async def _wait_for_room(self) -> None:
        self._room.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._unacknowledged.due_in()):
                await self._room.wait()

    def _to_claim(self, only: Sequence[str]) -> list[_TypeGroup]:
        """Return the groups to claim now, in turns; if types are named, only their groups."""
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

    async def _claim_and_start(
        self, groups: list[_TypeGroup], only: Sequence[str]
    ) -> tuple[bool, bool]:
        """Claim and start; returns whether there may be more, and whether there were any."""
        enough = found = False
        for group in groups:
            want = self._want(group)  # anew: the group before may have taken the slots
            if only:
                want = min(want, FEW)
            if not want:
                self._left_out.add(group)
                continue
            group.rescan.start_if_due(idle=False)
            self._asked = want
            try:
                claims, took = await self._send(
                    partial(
                        claim, self._store, self._worker_id, want, group.line, group.among(only)
                    )
                )
            finally:
                self._asked = 0
            if took is not None:
                group.buffer.claimed(took)
            if not only:
                self._left_out.discard(group)
            await self._run_claims.claim(claims, group.free() - len(group.buffer))
            enough = enough or len(claims) == want
            found = found or bool(claims)
        return enough, found

    def _may_claim_left_out(self) -> bool:
        """Whether jobs of a group that was left out could start now."""
        return any(self._want(group) for group in self._left_out)

    @property
    def _rescans_found_nothing(self) -> bool:
        return all(group.rescan.found_nothing for group in self._groups)

    async def _rescan(self, group: _TypeGroup, jobs: int) -> list[Claim]:
        claims, _ = await self._send(
            partial(claim_rescan, self._store, self._worker_id, jobs, group.line)
        )
        return claims

    async def claim_along(self, jobs: int, send: CompleteAndClaim) -> set[UUID] | None:
        """Send endings whose answer has so many claims at most; returns what moved; None: not sent.

        These jobs go before those in line. So this is only done for a moment after the loop has
        found the line empty. Then the loop has to look again.
        """
        (group, *others), in_hand, sent = self._groups, self._in_hand, time.monotonic()
        if self._waits and sent >= self._empty_at + LOOK_AGAIN / 2:
            self.wake()
        if (
            sent >= self._empty_at + LOOK_AGAIN
            or others
            or not in_hand.claiming
            or jobs > self._want(group) - self._asked
            or self._unacknowledged.due_in() == 0
        ):
            return None
        self._along += jobs
        self._along_ended.clear()
        try:
            moved, claims = await send()
        except HowdahError as refused:
            self._unacknowledged.suspect()
            if transient(refused):
                raise
            return None
        finally:
            self._along -= jobs
            if not self._along:
                self._along_ended.set()
        if time.monotonic() - sent > self._silent_after:
            self._unacknowledged.suspect()
        else:
            self._take(claims)
        return moved

    async def _send(
        self, send: Callable[[], Awaitable[list[Claim]]]
    ) -> tuple[list[Claim], float | None]:
        """Send one claim; returns the jobs and the seconds that it took.

        An answer that is lost leaves unacknowledged claims. So does one that comes too late to
        be true; then the seconds are None.
        """
        while True:
            sent = time.monotonic()
            try:
                claims = await send()
                break
            except HowdahError as refused:
                self._unacknowledged.suspect()
                if not await fail_unreadable(self._store, self._worker_id, self.job_types, refused):
                    raise
        took = time.monotonic() - sent
        if took > self._silent_after:
            self._unacknowledged.suspect()
            return [], None
        if claims:
            self._measures.claimed(claims[0].claimed_at, sent)
        return claims, took

    async def _notice_idle(self, found: bool, written_before: int) -> None:
        """Set `idle` if there is nothing left to do.

        `written_before` is how many batches of endings had been written when the claim began. An
        ending that was written since then may have put a job back in line, and the claim has
        not seen it.
        """
        if not self._rescans_found_nothing or self._left_out or not self._scanned_since:
            return
        in_hand = self._in_hand
        if not found and not in_hand.running and not in_hand.has_ready:
            unwritten = bool(in_hand.unwritten_leases())
            await in_hand.wait_until_written()
            again = unwritten or in_hand.batches_written != written_before
            if again or (self._idle_wanted and await self._lets_in_more()):
                self.wake()
            elif not in_hand.running and not in_hand.has_ready:
                self.idle.set()

    async def _lets_in_more(self) -> bool:
        """Admit jobs that wait for a slot; returns whether some may be in line now, or very soon.

        Upkeep does this too, but perhaps it has not yet. A job that a rate lets in later is not
        waited for, as a job that is not due.
        """
        try:
            admitted = await store_admit.admit(self._store)
        except HowdahError as error:  # the next claim meets the same error and deals with it
            _log.warning("claim.waiting retry_in=0.00s error=%s", error)
            return True
        if admitted is None:
            await asyncio.sleep(HOLD / 10)
            return True
        soon = admitted.next_look is not None and admitted.next_look <= _SOON
        if soon and not admitted.jobs:
            await asyncio.sleep(HOLD / 10)
        return soon or admitted.jobs > 0

    # ── ready to start ────────────────────────────────────────────────────────────────────

    def start_ready(self) -> None:
        """Start buffered jobs while slots are free, and claim more when they run low.

        Called when slots became free, or when endings were written.
        """
        if self._in_hand.line_changed:  # those jobs may be before the marks of their line
            self._in_hand.line_changed = False
            for group in self._groups:
                group.line.rescan_soon()
            self.wake()
        if not self._in_hand.claiming:
            self._release_ready()
            return
        now = time.monotonic()
        start = self._executor.start
        for group in self._by_urgency():
            buffer, free = group.buffer, group.free
            buffer.set_ended(group.ended(), now)
            while len(buffer) and (slots := free()) > 0:
                for ready in buffer.get(slots):
                    start(ready)
        self._signal_room()

    def _signal_room(self) -> None:
        """Let the loop go on if it waits and has something to do."""
        if self._unacknowledged.due_in() == 0 or self._wanted():
            self._room.set()
        if self._left_out and self._may_claim_left_out():
            self.wake()
        if self._idle_wanted and not self._in_hand.running:
            self.wake()  # the last job has ended: a claim tells whether that was all

    def _by_urgency(self) -> list[_TypeGroup]:
        """Return the groups; the one with the most urgent buffered job first."""
        if len(self._groups) == 1:
            return self._groups
        empty = [group for group in self._groups if not len(group.buffer)]
        filled = [group for group in self._groups if len(group.buffer)]
        return [*sorted(filled, key=lambda group: group.buffer.first), *empty]

    def _want(self, group: _TypeGroup) -> int:
        """How many jobs to claim now: none while too many endings wait to be written."""
        return 0 if self._in_hand.backlogged else group.buffer.wanted(group.free() - self._along)

    def _wanted(self) -> bool:
        return any(self._want(group) for group in self._groups)

    def _take(self, claims: list[Claim]) -> None:
        if claims:
            group = self._group_of[claims[0].job_type]  # all are of one group
            group.buffer.put(claims, time.monotonic())
            self.start_ready()
            if not self._checking_age:
                self._release_old()

    def _take_rescanned(self, claims: list[Claim]) -> None:
        """Take the jobs of a rescan; where a group was left out there may be more."""
        self._take(claims)
        if claims:
            self.wake()

    def _release_old(self) -> None:
        """Release jobs that wait here for too long; while any wait, check again soon."""
        for group in self._groups:
            self._release(group.buffer.held_too_long(time.monotonic()))
        self._checking_age = self._in_hand.has_ready
        if self._checking_age:
            asyncio.get_running_loop().call_later(HOLD / 4, self._release_old)

    def _release_ready(self) -> None:
        for group in self._groups:
            self._release(group.buffer.empty())
        self._release(self._in_hand.runs.empty())

    def _release(self, claims: Iterable[Claim]) -> None:
        for ready in claims:
            self._in_hand.add_ending(Ending(ready, Release()))
            self._release(self._in_hand.runs.take(ready))
