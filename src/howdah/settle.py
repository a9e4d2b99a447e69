"""Settle: tell the store how each attempt ended, in batches, until it is told.

Comes after   run/      which hands over one `Ending` per attempt
Comes before  observe/  which reads what was written
In SQL        sql/60_settle/, one file per verb

While one batch is on its way the next one gathers, so batches grow with the load; where too much
waits, nothing is claimed. When the database is away, endings are kept and sent again; every one
carries its lease, so a late one changes nothing. The store answers with the ids it moved: an id
that does not come back was stale, the job was cancelled or given to somebody else. A refusal of one
job's values fails that job; one that concerns every job ends the worker: its jobs are recovered.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import assert_never
from uuid import UUID

from howdah.errors import HowdahError
from howdah.outcomes import (
    Cancel,
    Complete,
    Ending,
    Fail,
    HandBack,
    Outcome,
    Release,
    Retry,
    Snooze,
)
from howdah.safe_logging import log_named
from howdah.states import State, Verb
from howdah.store import Store
from howdah.store import settle as store_settle
from howdah.store.batches import write_in_parts
from howdah.store.errors import about_one_job, transient
from howdah.text.reasons import describe, reason_of, shortened

_log = log_named("howdah.settle")

BATCH = 2000  # what a claim brings: with less, endings pile up behind fast jobs
BACKLOG = 1000  # endings that may wait: what is not written down would run again after a crash
SMALL = 100  # endings that are worth a moment's wait for more
SHORT = 100  # characters of a result in the log
GATHER = 0.003  # seconds: that moment, where claimed jobs are still to run

Refused = MutableMapping[tuple[UUID, int], str]  # by job and attempt: why an event is lost
Measure = Callable[[Verb, Sequence[Ending], dict[UUID, State | None], float], None]


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
        case Snooze() | Release():
            return Verb.RELEASE
        case HandBack():
            return Verb.HAND_BACK
        case _:
            assert_never(outcome)


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
    """Gathers endings and writes them down."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        before: Callable[[], Awaitable[Refused | None]],
        unsure: Callable[[], bool],
        measure: Measure | None = None,
        more: Callable[[], bool] = lambda: False,
        *,
        log_jobs: bool = False,
    ) -> None:
        self._store = store
        self._worker_id = worker_id
        self._before = before  # writes the reports of jobs that end; says what was refused of them
        self._unsure = unsure  # a release got no answer; whether somebody else sees to it
        self._measure = measure  # hears of every batch once it is written down
        self._more = more  # whether jobs are held that have still to run
        self._log_jobs = log_jobs  # whether every end is worth a line, also a good one
        self._waiting: deque[Ending] = deque()
        self._sending: dict[Verb, list[Ending]] = {}
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self.broken: bool = False  # nothing more is written down: see run
        self.settled: int = 0
        self.stale: int = 0

    def add(self, ending: Ending) -> None:
        if not self._waiting:  # else both are so already
            self._work.set()
            if not self.broken:
                self._idle.clear()
        self._waiting.append(ending)

    @property
    def behind(self) -> bool:
        """Whether so much waits to be written down that no more should be claimed."""
        return len(self._waiting) > BACKLOG

    def held(self) -> list[tuple[UUID, int]]:
        """Return the attempts whose endings are not known to be written down."""
        sending = (ending for endings in self._sending.values() for ending in endings)
        return [(one.claim.id, one.claim.attempt) for one in (*self._waiting, *sending)]

    async def flushed(self) -> None:
        """Wait until everything added so far is written down, or never will be."""
        await self._idle.wait()
        if self.broken:
            await self._write_what_can_be()

    async def run(self) -> None:
        """Write endings down for as long as the worker lives."""
        wait = 0.05
        while True:
            await self._work.wait()
            if len(self._waiting) < SMALL and self._more():
                await asyncio.sleep(GATHER)
            batches: defaultdict[Verb, list[Ending]] = defaultdict(list)
            self._sending = batches
            completed: list[Ending] = []
            take = self._waiting.popleft
            for _ in range(min(BATCH, len(self._waiting))):
                ending = take()
                if type(ending.outcome) is Complete:  # what most are, without a step between
                    completed.append(ending)
                else:
                    batches[verb_for(ending.outcome)].append(ending)
            if completed:
                batches[Verb.COMPLETE] = completed
            try:
                if refused := await self._before():
                    _fail_unreported(batches, refused)
                await self._settle(batches)
                wait = 0.05
            except HowdahError as error:
                if not transient(error):
                    self._waiting.extendleft(one for batch in batches.values() for one in batch)
                    batches.clear()
                    self.broken = True
                    self._idle.set()
                    raise
                self._keep(batches)
                _log.warning(
                    "settle.waiting endings=%d retry_in=%.2fs error=%s",
                    len(self._waiting),
                    wait,
                    error,
                )
                await asyncio.sleep(wait)
                wait = min(wait * 2, 5.0)
            if not self._waiting:
                self._work.clear()
                self._idle.set()

    def _keep(self, batches: dict[Verb, list[Ending]]) -> None:
        """Keep what got no answer, to be sent again.

        Except for releases: a job that was released may come back to this worker as the same
        attempt, and a release sent again would then take it away. Strays are seen to elsewhere.
        """
        endings = [ending for batch in batches.values() for ending in batch]
        if any(type(ending.outcome) is Release for ending in endings) and self._unsure():
            endings = [ending for ending in endings if type(ending.outcome) is not Release]
        self._waiting.extendleft(reversed(endings))
        batches.clear()

    async def _settle(self, batches: dict[Verb, list[Ending]]) -> None:
        """Write every batch; one that is written leaves the dict, so the rest can be sent again."""
        taken_up = time.monotonic()
        # side by side: they are different jobs, and each batch waits for the disk
        answers = await asyncio.gather(
            *(self._settle_batch(verb, batches, taken_up) for verb in list(batches)),
            return_exceptions=True,
        )
        if errors := [answer for answer in answers if answer is not None]:
            raise min(errors, key=transient)  # first what no waiting heals

    async def _settle_batch(
        self, verb: Verb, batches: dict[Verb, list[Ending]], taken_up: float
    ) -> None:
        async def write(part: Sequence[Ending]) -> dict[UUID, State | None]:
            return await self._write(verb, part)

        def written(part: Sequence[Ending], moved: dict[UUID, State | None]) -> None:
            batches[verb] = batches[verb][len(part) :]
            self._tell(verb, part, moved, taken_up)

        async def refused(ending: Ending, error: Exception) -> None:
            await self._fail_instead(verb, ending, error, taken_up)
            batches[verb] = batches[verb][1:]

        await write_in_parts(batches[verb], write, written, refused)
        del batches[verb]

    async def _fail_instead(
        self, verb: Verb, ending: Ending, error: Exception, taken_up: float
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
            self._tell(Verb.FAIL, failed, moved, taken_up)

    async def _write_what_can_be(self) -> None:
        """Try every verb once more: where one is refused, others may still be written."""
        batches: defaultdict[Verb, list[Ending]] = defaultdict(list)
        for ending in self._waiting:
            batches[verb_for(ending.outcome)].append(ending)
        self._waiting.clear()
        for verb, endings in batches.items():
            try:
                self._tell(verb, endings, await self._write(verb, endings), time.monotonic())
            except HowdahError:
                self._waiting.extend(endings)

    async def _write(self, verb: Verb, endings: Sequence[Ending]) -> dict[UUID, State | None]:
        """Write one batch of one verb; returns what moved, and where it matters whereto."""
        store, worker_id = self._store, self._worker_id
        outcomes = [ending.outcome for ending in endings]
        if verb is Verb.COMPLETE:
            results = [o.result for o in outcomes if isinstance(o, Complete)]
            moved = await store_settle.complete(store, worker_id, endings, results)
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
            delays = [o.after if isinstance(o, Snooze) else None for o in outcomes]
            moved = await store_settle.release(store, worker_id, endings, delays)
        return dict.fromkeys(moved)

    def _tell(
        self,
        verb: Verb,
        endings: Sequence[Ending],
        moved: dict[UUID, State | None],
        taken_up: float,
    ) -> None:
        """Tell the log and whoever measures of endings that are written down."""
        self._log_all(verb, endings, moved)
        if self._measure is not None:
            try:
                self._measure(verb, endings, moved, taken_up)
            except Exception as error:  # they are written down all the same
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
