"""RunClaims: claim the runs of ordered keys, with the job that comes first and again as they begin.

Comes after   loop.py   which claims the jobs that come first
Comes before  runs.py   which holds what was claimed
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable
from contextvars import copy_context
from uuid import UUID

import msgspec

from howdah.claim.claim import claim_runs
from howdah.claim.unacknowledged import UnacknowledgedClaims
from howdah.errors import HowdahError
from howdah.in_hand import InHand
from howdah.job import Claim
from howdah.run.executor import Attempt
from howdah.safe_logging import log_named
from howdah.store import Store

_log = log_named("howdah.worker")


class RunClaims:
    """Claims runs for one worker."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        ordered: Collection[str],
        in_hand: InHand[Attempt],
        unacknowledged: UnacknowledgedClaims,
        *,
        batch_size: int,
        silent_after: float,
        on_claimed: Callable[[list[Claim]], None],
        on_refused: Callable[[Iterable[Claim]], None],
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._ordered = frozenset(ordered)
        self._in_hand = in_hand
        self._unacknowledged = unacknowledged
        self._batch_size = batch_size
        self._silent_after = silent_after
        self._on_claimed = on_claimed
        self._on_refused = on_refused
        self._growing: asyncio.Task[None] | None = None
        self._empty_context = copy_context()  # belongs to no job
        self.under_way: asyncio.Lock = asyncio.Lock()  # held while runs grow
        in_hand.runs.on_growing = self._grow_soon

    async def claim(self, claims: list[Claim], room: int) -> None:
        """Take these jobs; first claim what follows those that can start now in ordered keys.

        `room` is how many can start now.
        """
        heads = [
            (head, most)
            for head in (claims[: max(room, 0)] if self._ordered else ())
            if head.job_type in self._ordered and (most := self._in_hand.runs.wanted(head))
        ]
        share = self._batch_size // len(heads) if heads else 0
        if share < 2:
            self._on_claimed(claims)
            return
        asked = {head.id for head, _ in heads}
        self._on_claimed([claim for claim in claims if claim.id not in asked])
        self._on_claimed(await self._add_runs([(head, min(most, share)) for head, most in heads]))

    async def ended(self, timeout: float) -> None:
        """Wait for a claim of more jobs for runs, but not longer than so many seconds."""
        if self._growing is not None:
            await asyncio.wait([self._growing], timeout=timeout)

    async def _add_runs(self, heads: list[tuple[Claim, int]]) -> list[Claim]:
        """Claim the runs of these jobs; returns the jobs, marked where they have one."""
        runs = await self._claim_behind(heads)
        if runs is None:
            return [head for head, _ in heads]
        now, kept = time.monotonic(), self._in_hand.runs
        for job_type in {head.job_type for head, _ in heads}:
            own = (len(runs.get(head.id, ())) for head, _ in heads if head.job_type == job_type)
            kept.found(job_type, sum(own))
        marked: list[Claim] = []
        for head, _ in heads:
            if following := runs.get(head.id):
                kept.add(head, following, now)
                head = msgspec.structs.replace(head, in_run=True)
            marked.append(head)
        return marked

    def _grow_soon(self) -> None:
        """Claim more jobs for the runs that have just begun, beside the claims."""
        if self._growing is None:
            context = self._empty_context.copy()
            self._growing = asyncio.create_task(self._grow(), name="howdah-runs", context=context)

    async def _grow(self) -> None:
        kept = self._in_hand.runs
        try:
            while (growing := kept.growing()) and self._in_hand.claiming:
                share = max(1, self._batch_size // len(growing))
                lasts = [(run.last, min(kept.most(run.last.job_type), share)) for run in growing]
                async with self.under_way:
                    runs = await self._claim_behind(lasts)
                    for run, (last, _) in zip(growing, lasts, strict=True):
                        following = [] if runs is None else runs.get(last.id, [])
                        start, release = kept.grown(run, following, time.monotonic())
                        self._on_claimed(start)
                        self._on_refused(release)
        finally:
            self._growing = None

    async def _claim_behind(self, lasts: list[tuple[Claim, int]]) -> dict[UUID, list[Claim]] | None:
        """Claim what follows these jobs, up to a number for each; None: there is no answer."""
        sent = time.monotonic()
        try:
            runs = await claim_runs(self._store, self._worker_id, lasts)
        except HowdahError as error:  # the next claim meets the same error and deals with it
            self._unacknowledged.suspect()
            _log.warning("claim.runs_failed jobs=%d error=%s", len(lasts), error)
            return None
        if time.monotonic() - sent > self._silent_after:
            self._unacknowledged.suspect()
            return None
        return runs
