"""Settle: write how each attempt ended, in batches, until it is written.

Comes after   run/      which adds one `Ending` per attempt to `InHand`
Comes before  observe/  which reads what was written
In SQL        sql/60_settle/, one file per verb

While one batch is under way the next one collects, so batches grow with the load. When the database
is away, endings are kept and sent again. Each carries its lease, so a late one changes nothing. The
store returns the ids that it moved. An id that is missing was stale: the job was cancelled or given
to another worker. If one job's values are refused, that job fails. If every job is refused, the
worker stops, and its jobs are recovered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, MutableMapping, Sequence
from functools import partial
from typing import assert_never
from uuid import UUID

from howdah.errors import HowdahError
from howdah.growing_pause import GrowingPause
from howdah.in_hand import InHand, LeaseKey, Running
from howdah.job import Claim
from howdah.outcomes import (
    Cancel,
    Committed,
    Complete,
    Ending,
    Fail,
    HandBack,
    Outcome,
    Release,
    Retry,
    Snooze,
    Suspend,
)
from howdah.safe_logging import log_named
from howdah.states import State, Verb
from howdah.store import Store
from howdah.store import settle as store_settle
from howdah.store import steps as store_steps
from howdah.store.batches import write_in_parts
from howdah.store.errors import about_one_job, transient
from howdah.text.reasons import describe, reason_of, shortened

_log = log_named("howdah.settle")

BATCH = 2000  # what a claim brings: with smaller batches, the endings of fast jobs would pile up
SMALL = 100  # endings: a smaller batch waits for a moment, because more may come
GATHER = 0.003  # seconds: that moment
SPLIT = 200  # endings of jobs for which others wait: so many are written in two halves
LONG = 20  # such endings: while so many are written, claims pass the places of those that join
SHORT = 100  # characters of a result in the log

Refused = MutableMapping[LeaseKey, str]  # why an event of an attempt could not be stored
OnSettled = Callable[[Verb, Sequence[Ending], dict[UUID, State | None], float], None]
CompleteAndClaim = Callable[[], Awaitable[tuple[set[UUID], list[Claim]]]]
ClaimAlong = Callable[[int, CompleteAndClaim], Awaitable[set[UUID] | None]]


def verb_for(outcome: Outcome) -> Verb:
    """Name the move that writes this outcome down."""
    match outcome:
        case Complete():
            return Verb.COMPLETE
        case Retry():
            return Verb.RETRY
        case Fail():
            return Verb.FAIL
        case Cancel():
            return Verb.CANCEL
        case Snooze() | Release() | Suspend():
            return Verb.RELEASE
        case HandBack():
            return Verb.HAND_BACK
        case _:
            assert_never(outcome)


async def _all_of(calls: Iterable[Awaitable[None]]) -> None:
    """Wait for all of these; if some failed, an error that waiting cannot heal comes first."""
    answers = await asyncio.gather(*calls, return_exceptions=True)
    if errors := [answer for answer in answers if answer is not None]:
        raise min(errors, key=transient)


def _fail_unreported(batches: dict[Verb, list[Ending]], refused: Refused) -> None:
    """Let no attempt count as completed whose events could not be stored."""
    for verb, endings in list(batches.items()):
        lost = [refused.pop((e.claim.id, e.claim.attempt), None) for e in endings]
        if verb is Verb.COMPLETE and any(lost):
            both = list(zip(endings, lost, strict=True))
            batches[verb] = [ending for ending, why in both if why is None]
            batches.setdefault(Verb.FAIL, []).extend(
                Ending(ending.claim, Fail(why), ending.began, ending.ended)
                for ending, why in both
                if why is not None
            )
            if not batches[verb]:
                del batches[verb]


class Settler:
    """Writes the endings of one worker."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        in_hand: InHand[Running],
        flush_reports: Callable[[], Awaitable[Refused]],
        release_unanswered: Callable[[], None],
        on_settled: Sequence[OnSettled] = (),
        *,
        slotted: Collection[str] = (),
        ruled: Collection[str] = (),
        log_jobs: bool = False,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._in_hand = in_hand
        self._flush_reports = flush_reports  # returns which events were refused
        self._release_unanswered = release_unanswered  # a release got no answer: find its jobs
        self._on_settled = on_settled  # called with every batch that was written
        self._slotted = slotted  # job types of which others wait for the end of these
        self._ruled = ruled  # these, and ordered ones
        # sends a batch whose answer has so many claims at most; None: it did not send it
        self.claim_along: ClaimAlong | None = None
        self._committed: list[Ending] = []  # of jobs that a handler completed in a transaction
        self._log_jobs = log_jobs  # whether to log every end, also a good one
        self.settled: int = 0
        self.stale: int = 0

    async def flushed(self) -> None:
        """Wait until every ending added so far is written, or never will be."""
        await self._in_hand.wait_until_written()
        if self._in_hand.broken:
            await self._write_possible()

    async def run(self) -> None:
        """Write endings for as long as the worker lives."""
        in_hand = self._in_hand
        pause = GrowingPause(0.05, 5.0, self._store.reachable)
        while True:
            await in_hand.wait_for_endings()
            if len(in_hand.endings) < SMALL and in_hand.has_ready:
                await asyncio.sleep(GATHER)
            batches = in_hand.sending = self._next_batches()
            if self._committed:
                self._tell_committed()
            try:
                if refused := await self._flush_reports():
                    _fail_unreported(batches, refused)
                await self._settle(batches)
                pause.reset()
            except HowdahError as error:
                if not transient(error):
                    in_hand.endings.extendleft(e for batch in batches.values() for e in batch)
                    batches.clear()
                    in_hand.give_up_writing()
                    raise
                self._keep(batches)
                seconds = pause.next()
                _log.warning(
                    "settle.waiting endings=%d retry_in=%.2fs error=%s",
                    len(in_hand.endings),
                    seconds,
                    error,
                )
                await self._store.reachable.wait(seconds)
            in_hand.batch_answered()

    def _next_batches(self) -> dict[Verb, list[Ending]]:
        """Take the next endings, by verb."""
        batches: defaultdict[Verb, list[Ending]] = defaultdict(list)
        completed: list[Ending] = []
        endings = self._in_hand.endings
        for _ in range(min(BATCH, len(endings))):
            ending = endings.popleft()
            if type(ending.outcome) is Complete:  # the usual case: saves two calls
                completed.append(ending)
                continue
            if type(ending.outcome) is Committed:
                self._committed.append(ending)
                continue
            verb = verb_for(ending.outcome)
            if ending.claim.in_run and verb is not Verb.RELEASE:
                endings.appendleft(ending)
                if completed or batches:
                    break
                return self._next_of(verb)
            batches[verb].append(ending)
        if completed:
            batches[Verb.COMPLETE] = completed
        return batches

    def _next_of(self, verb: Verb) -> dict[Verb, list[Ending]]:
        """Take the next endings up to the first that has another verb.

        Verbs are written at the same time. Of a run, no job may end in the database before the
        one before it: if the worker died then, only the earlier one would run again.
        """
        batch: list[Ending] = []
        endings = self._in_hand.endings
        while endings and len(batch) < BATCH and verb_for(endings[0].outcome) is verb:
            batch.append(endings.popleft())
        return {verb: batch}

    def _keep(self, batches: dict[Verb, list[Ending]]) -> None:
        """Keep the endings that got no answer, to send them again.

        Releases are the exception. A released job may come back to this worker as the same
        attempt, and a second release would take it away. The worker looks for such jobs
        instead (claim/unacknowledged.py), as long as it claims.
        """
        endings = [ending for batch in batches.values() for ending in batch]
        if any(type(ending.outcome) is Release for ending in endings):
            self._release_unanswered()
            if self._in_hand.claiming:
                endings = [ending for ending in endings if type(ending.outcome) is not Release]
        self._in_hand.endings.extendleft(reversed(endings))
        batches.clear()

    async def _settle(self, batches: dict[Verb, list[Ending]]) -> None:
        """Write every batch; a written one leaves the dict, so the rest can be sent again."""
        taken_at = time.monotonic()
        # at the same time: they are different jobs, and each batch waits for the disk
        await _all_of(self._settle_batch(verb, batches, taken_at) for verb in list(batches))

    async def _settle_batch(
        self, verb: Verb, batches: dict[Verb, list[Ending]], taken_at: float
    ) -> None:
        async def write(part: Sequence[Ending]) -> dict[UUID, State | None]:
            return await self._write(verb, part)

        def remove(part: Sequence[Ending]) -> None:
            gone = {id(ending) for ending in part}
            left = batches[verb]
            batches[verb] = [e for e in left if id(e) not in gone] if len(part) < len(left) else []

        def written(part: Sequence[Ending], moved: dict[UUID, State | None]) -> None:
            remove(part)
            self._tell(verb, part, moved, taken_at)

        async def refused(ending: Ending, error: Exception) -> None:
            await self._fail_instead(verb, ending, error, taken_at)
            remove([ending])

        await _all_of(
            write_in_parts(part, write, written, refused)
            for part in self._beside_each_other(verb, batches[verb])
        )
        del batches[verb]

    def _beside_each_other(self, verb: Verb, endings: list[Ending]) -> list[list[Ending]]:
        """Split a batch whose answer brings the next jobs; other batches stay whole.

        The worker has nothing to do before the answer. Each half is written by a server process of
        its own, and the jobs of the first answer run while the second half is written.
        """
        slotted = self._slotted
        if (
            not slotted
            or verb is not Verb.COMPLETE
            or len(endings) < SPLIT
            or any(ending.claim.job_type not in slotted for ending in endings)
        ):
            return [endings]
        middle = len(endings) // 2
        return [endings[:middle], endings[middle:]]

    async def _fail_instead(
        self, verb: Verb, ending: Ending, error: Exception, taken_at: float
    ) -> None:
        """Fail a job whose ending the database refuses; leave one that it refuses to fail."""
        _log.error("settle.refused id=%s verb=%s error=%s", ending.claim.id, verb, describe(error))
        reason = reason_of(f"its ending could not be stored: {reason_of(error)}")
        failed = [Ending(ending.claim, Fail(reason), ending.began, ending.ended)]
        try:
            moved = await self._write(Verb.FAIL, failed)
        except Exception as again:
            if isinstance(again, HowdahError) and not about_one_job(again):
                raise
            _log.error(
                "settle.given_up id=%s error=%s: it stays claimed until this worker ends",
                ending.claim.id,
                describe(again),
            )
        else:
            self._tell(Verb.FAIL, failed, moved, taken_at)

    async def _write_possible(self) -> None:
        """Try every verb once more: if one is refused, others may still be written."""
        endings_left = self._in_hand.endings
        batches: defaultdict[Verb, list[Ending]] = defaultdict(list)
        for ending in endings_left:
            batches[verb_for(ending.outcome)].append(ending)
        endings_left.clear()
        for verb, endings in batches.items():
            try:
                self._tell(verb, endings, await self._write(verb, endings), time.monotonic())
            except HowdahError:
                endings_left.extend(endings)

    async def _write(self, verb: Verb, endings: Sequence[Ending]) -> dict[UUID, State | None]:
        """Write one batch of one verb; returns the moved jobs, and their new state if it varies."""
        store, worker_id = self._store, self._worker_id
        outcomes = [ending.outcome for ending in endings]
        if verb is Verb.COMPLETE:
            results = [o.result for o in outcomes if isinstance(o, Complete)]
            moved = await self._complete(endings, results)
        elif verb is Verb.RETRY:
            retries = [o for o in outcomes if isinstance(o, Retry)]
            return dict(
                await store_settle.retry(
                    store,
                    worker_id,
                    endings,
                    [o.reason or "asked for a retry" for o in retries],
                    [o.after for o in retries if o.after is not None],
                    [o.traceback for o in retries],
                )
            )
        elif verb is Verb.FAIL:
            fails = [o for o in outcomes if isinstance(o, Fail)]
            moved = await store_settle.fail(
                store,
                worker_id,
                endings,
                [o.reason or "failed" for o in fails],
                [o.traceback for o in fails],
            )
        elif verb is Verb.HAND_BACK:
            backs = [o for o in outcomes if isinstance(o, HandBack)]
            return dict(
                await store_settle.hand_back(
                    store,
                    worker_id,
                    endings,
                    [o.reason for o in backs],
                    [o.signature for o in backs],
                )
            )
        elif verb is Verb.CANCEL:
            reasons = [o.reason or "cancelled" for o in outcomes if isinstance(o, Cancel)]
            moved = await store_settle.cancel_held(store, worker_id, endings, reasons)
        else:
            moved = await self._put_back(endings)
        return dict.fromkeys(moved)

    async def _put_back(self, endings: Sequence[Ending]) -> set[UUID]:
        """Release, delay or suspend; the attempts do not count."""
        moved: set[UUID] = set()
        if suspended := [e for e in endings if type(e.outcome) is Suspend]:
            moved |= await store_steps.suspend(self._store, self._worker_id, suspended)
            endings = [e for e in endings if type(e.outcome) is not Suspend]
        if endings:
            delays = [e.outcome.after if isinstance(e.outcome, Snooze) else None for e in endings]
            moved |= await store_settle.release(self._store, self._worker_id, endings, delays)
        return moved

    async def _complete(
        self, endings: Sequence[Ending], results: Sequence[str | None]
    ) -> set[UUID]:
        """Complete; where jobs wait for these, the call also claims those that get their slots."""
        store, worker_id, slotted = self._store, self._worker_id, self._slotted
        if (
            slotted
            and self.claim_along is not None
            and any(ending.claim.job_type in slotted for ending in endings)
        ):
            both = partial(
                store_settle.complete_and_claim, store, worker_id, endings, results, sorted(slotted)
            )
            if (moved := await self.claim_along(len(endings), both)) is not None:
                return moved
        moved = await store_settle.complete(store, worker_id, endings, results)
        if len(endings) >= LONG and any(e.claim.job_type in self._ruled for e in endings):
            self._in_hand.line_changed = True
        return moved

    def _tell_committed(self) -> None:
        """Tell everyone of jobs whose completion is written."""
        endings, self._committed = self._committed, []
        moved: dict[UUID, State | None] = dict.fromkeys(ending.claim.id for ending in endings)
        self._tell(Verb.COMPLETE, endings, moved, time.monotonic())

    def _tell(
        self,
        verb: Verb,
        endings: Sequence[Ending],
        moved: dict[UUID, State | None],
        taken_at: float,
    ) -> None:
        """Tell everyone who asked for it that endings were written."""
        self._log_all(verb, endings, moved)
        self._in_hand.written(verb, endings)
        for on_settled in self._on_settled:
            try:
                on_settled(verb, endings, moved, taken_at)
            except Exception as error:  # the endings are written all the same
                _log.error("settle.unmeasured endings=%d error=%s", len(endings), describe(error))

    def _log_all(
        self, verb: Verb, endings: Sequence[Ending], moved: dict[UUID, State | None]
    ) -> None:
        self.settled += len(moved)
        if len(moved) < len(endings):
            for ending in endings:
                if ending.claim.id not in moved:
                    self.stale += 1
                    _log.warning(
                        "job.stale id=%s type=%s attempt=%d verb=%s: "
                        "it was cancelled or given to another worker",
                        ending.claim.id,
                        ending.claim.job_type,
                        ending.claim.attempt,
                        verb,
                    )
        if verb is not Verb.COMPLETE or self._log_jobs or _log.isEnabledFor(logging.DEBUG):
            for ending in endings:
                if ending.claim.id in moved:
                    self._log_one(verb, ending, moved[ending.claim.id])

    def _log_one(self, verb: Verb, ending: Ending, now: State | None) -> None:
        failed = verb is Verb.FAIL or now is State.FAILED
        level = logging.ERROR if failed else logging.DEBUG
        if verb in (Verb.RETRY, Verb.HAND_BACK) and not failed:
            level = logging.WARNING
        outcome, claim = ending.outcome, ending.claim
        if self._log_jobs and type(outcome) is not Release:
            level = max(level, logging.INFO)
        took = None if ending.began is None or ending.ended is None else ending.ended - ending.began
        reason = getattr(outcome, "reason", "")
        result = outcome.result if isinstance(outcome, Complete) else None
        _log.ended(
            level,
            claim,
            outcome.traceback if isinstance(outcome, Retry | Fail) else None,
            "job.%s id=%s type=%s attempt=%d/%d%s%s%s",
            Verb.FAIL if failed else verb,
            claim.id,
            claim.job_type,
            claim.attempt,
            claim.max_attempts,
            "" if took is None else f" took={took:.3f}s",
            f" reason={reason}" if reason else "",
            f" result={shortened(result, SHORT)}" if result is not None else "",
        )
