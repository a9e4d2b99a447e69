"""InHand: the jobs that one worker holds, from their claim until their endings are written.

A job is in one of five places: *ready* in a buffer, in a *run* behind another one, *running*,
*ended* and waiting to be written, or *sending*, in a statement whose answer has not come. This is
the only owner of all five, so it knows the leases, the free slots and the backlog. Claim loop,
executor and settler share it and do not know each other.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar
from uuid import UUID

from howdah.job import Claim
from howdah.outcomes import Ending, Release, Suspend
from howdah.runs import Runs
from howdah.states import Verb

BACKLOG = 1000  # endings that may wait: a job whose ending is not written runs again after a crash

_IN_LINE = (Release, Suspend)  # the job may be in line again, where it was before

LeaseKey = tuple[UUID, int]  # a job and its attempt


class HasClaim(Protocol):
    """One running job, as far as it matters here."""

    claim: Claim


class ReadyBuffer(Protocol):
    """Claimed jobs that have not started."""

    def __len__(self) -> int: ...

    def leases(self) -> list[LeaseKey]: ...


Running = TypeVar("Running", bound=HasClaim)


class InHand(Generic[Running]):
    """What a worker holds, and how much more it could start."""

    def __init__(self, slots: int, threads: int) -> None:
        self.slots: int = slots
        self.thread_limit: int = min(threads, slots)
        self.ready: list[ReadyBuffer] = []
        self.runs: Runs = Runs()
        self.running: dict[UUID, Running] = {}
        self.endings: deque[Ending] = deque()
        self.sending: dict[Verb, list[Ending]] = {}
        self.abandoned: int = 0  # handlers that run on after their attempt ended; each has a slot
        self.in_threads: int = 0  # attempts that use a thread, also abandoned ones
        self.ended: int = 0  # attempts that ended so far
        self.ended_in_threads: int = 0
        self.claiming: bool = True  # False when the worker stops: then nothing more is claimed
        self.line_changed: bool = False  # whether jobs that scans may not find joined the line
        self.batches_written: int = 0  # batches of endings that were written so far
        self.broken: bool = False  # whether no ending will be written any more
        self.on_room: Callable[[], None] = lambda: None  # called when more jobs may fit
        self._has_endings = asyncio.Event()
        self._all_written = asyncio.Event()
        self._all_written.set()

    # ── how much more fits ────────────────────────────────────────────────────────────────

    @property
    def free(self) -> int:
        """How many more jobs could start now."""
        return self.slots - len(self.running) - self.abandoned

    @property
    def free_in_threads(self) -> int:
        """How many more jobs could start in threads now."""
        return min(self.free, self.thread_limit - self.in_threads)

    @property
    def backlogged(self) -> bool:
        """Whether so many endings wait to be written that nothing more should be claimed."""
        return len(self.endings) > BACKLOG

    @property
    def has_ready(self) -> bool:
        """Whether claimed jobs have still to start."""
        return any(len(buffer) for buffer in self.ready) or bool(self.runs)

    # ── leases ────────────────────────────────────────────────────────────────────────────

    def running_leases(self) -> list[LeaseKey]:
        """Return the leases of the running jobs. Safe in any thread."""
        return [(a.claim.id, a.claim.attempt) for a in list(self.running.values())]

    def unwritten_leases(self) -> list[LeaseKey]:
        """Return the attempts whose endings are not known to be written."""
        sending = (ending for endings in self.sending.values() for ending in endings)
        return [(e.claim.id, e.claim.attempt) for e in (*self.endings, *sending)]

    def leases(self) -> set[LeaseKey]:
        """Return the leases of all jobs that this worker knows to hold."""
        ready = (lease for buffer in self.ready for lease in buffer.leases())
        return {*self.running_leases(), *ready, *self.runs.leases(), *self.unwritten_leases()}

    # ── endings ───────────────────────────────────────────────────────────────────────────

    def add_ending(self, ending: Ending) -> None:
        """Keep an ending until it is written."""
        if not self.endings:  # otherwise both events are right already
            self._has_endings.set()
            if not self.broken:
                self._all_written.clear()
        self.endings.append(ending)

    async def wait_for_endings(self) -> None:
        """Wait until there is an ending to write."""
        await self._has_endings.wait()

    async def wait_until_written(self) -> None:
        """Wait until every ending added so far is written, or never will be."""
        await self._all_written.wait()

    def written(self, verb: Verb, endings: Sequence[Ending]) -> None:
        """Note that endings were written: more jobs may fit, and released ones are in line."""
        self.batches_written += 1
        if verb is Verb.RELEASE and any(type(ending.outcome) in _IN_LINE for ending in endings):
            self.line_changed = True
        self.on_room()

    def batch_answered(self) -> None:
        """Note that the batch has its answer: none of it is left to send."""
        if not self.endings:
            self._has_endings.clear()
            self._all_written.set()

    def give_up_writing(self) -> None:
        """Note that no ending will be written any more."""
        self.broken = True
        self._all_written.set()
