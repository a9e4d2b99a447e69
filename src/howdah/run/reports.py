"""Reports: collect progress, checkpoints and events of running jobs, and send them to the store.

A handler's report costs a few memory writes. The worker sends the collected reports several times
a second, for all its jobs in one statement of each kind. It sends only the last progress and the
last checkpoint of a job, and its events up to a limit; one more event, `howdah.dropped`, counts the
rest. A job's reports are sent before its ending.

A report that the database refuses is dropped and logged; all others are written. Refused progress
and checkpoints do no harm: the next value replaces them. A refused event is lost, so its attempt
must not count as completed: see `refused`.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from howdah.events import DROPPED
from howdah.job import Claim
from howdah.run.report_checks import check_checkpoint, check_event, check_progress
from howdah.run.steps import StepBackend
from howdah.safe_logging import log_named
from howdah.store import Store
from howdah.store import run as store_run
from howdah.store import steps as store_steps
from howdah.store.batches import write_in_parts
from howdah.text.reasons import describe, reason_of

if TYPE_CHECKING:
    from howdah.run.completions import Completions

_log = log_named("howdah.run")

EVENTS_PER_FLUSH = 100  # per job; at five flushes a second, 500 events a second are kept
CALL = 16_000_000  # characters of events in one call, approximately

Lease = tuple[UUID, int]  # a job and its attempt


class _Event(NamedTuple):
    claim: Claim
    kind: str
    data: str
    dropped: int = 0  # in a `howdah.dropped` event: how many events it counts


class _Report:
    __slots__ = ("checkpoint", "claim", "dropped", "events", "percent", "stage")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.percent: int | None = None
        self.stage: str | None = None
        self.checkpoint: str | None = None  # encoded JSON
        self.events: list[_Event] = []
        self.dropped = 0

    def all_events(self) -> Iterator[_Event]:
        yield from self.events
        if self.dropped:
            yield _Event(self.claim, DROPPED, f'{{"count":{self.dropped}}}', self.dropped)


class Reports:
    """The reports of a worker's running jobs that are not sent yet. Safe in any thread."""

    def __init__(self, steps: StepBackend) -> None:
        self.steps: StepBackend = steps  # stores steps at once, not with the reports
        self._gathered: dict[UUID, _Report] = {}
        self._lock = threading.Lock()  # handlers also report from threads
        self.completions: Completions | None = None
        self.refused: dict[Lease, str] = {}  # why an attempt's event could not be stored

    def __bool__(self) -> bool:
        return bool(self._gathered)

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None:
        kept, stage = check_progress(percent, stage)
        with self._lock:
            report = self._of(claim)
            if kept is not None:
                report.percent = kept
            if stage is not None:
                report.stage = stage

    def emit(self, claim: Claim, kind: str, data: object) -> None:
        event = _Event(claim, *check_event(kind, data))
        with self._lock:
            report = self._of(claim)
            if len(report.events) < EVENTS_PER_FLUSH:
                report.events.append(event)
            else:
                report.dropped += 1

    def checkpoint(self, claim: Claim, data: object) -> None:
        encoded = check_checkpoint(data)
        with self._lock:
            self._of(claim).checkpoint = encoded

    def _of(self, claim: Claim) -> _Report:
        report = self._gathered.get(claim.id)
        if report is None or report.claim.attempt != claim.attempt:
            report = self._gathered[claim.id] = _Report(claim)
        return report

    async def flush(self, store: Store, worker_id: str) -> set[Lease]:
        """Send the collected reports; returns the leases that are no longer ours."""
        if not self._gathered:
            return set()
        with self._lock:
            reports, self._gathered = list(self._gathered.values()), {}
        events = [event for report in reports for event in report.all_events()]
        progressed = [r for r in reports if r.percent is not None or r.stage]
        checkpoints = [r for r in reports if r.checkpoint is not None]
        lost: set[Lease] = set()
        try:
            # events first: a follower that sees a new progress must also see the events before it
            await self._write_events(store, worker_id, events, lost)
            await self._write_progress(store, worker_id, progressed, lost)
            await self._write_checkpoints(store, worker_id, checkpoints, lost)
        except BaseException:
            self._put_back(events, progressed, checkpoints)
            raise
        return lost

    async def _write_events(
        self, store: Store, worker_id: str, events: list[_Event], lost: set[Lease]
    ) -> None:
        """Write events in order; a written or refused event is removed from the list."""

        async def write(part: Sequence[_Event]) -> set[UUID]:
            return await store_run.emit(store, worker_id, [(e.claim, e.kind, e.data) for e in part])

        def written(part: Sequence[_Event], ours: set[UUID]) -> None:
            lost.update(_leases(event.claim for event in part if event.claim.id not in ours))
            del events[: len(part)]

        async def refused(event: _Event, error: Exception) -> None:
            del events[0]
            claim = event.claim
            why = reason_of(f"its event {event.kind!r} could not be stored: {reason_of(error)}")
            self.refused.setdefault((claim.id, claim.attempt), why)
            _log.error("event.refused %s", _refusal(claim, error))

        while events:
            await write_in_parts(events[: _fitting(events)], write, written, refused)

    async def _write_progress(
        self, store: Store, worker_id: str, progressed: list[_Report], lost: set[Lease]
    ) -> None:
        async def write(part: Sequence[_Report]) -> set[UUID]:
            rows = [(r.claim, r.percent, r.stage) for r in part]
            return await store_run.progress(store, worker_id, rows)

        await _write_last(progressed, write, lost, _log_refused_progress)

    async def _write_checkpoints(
        self, store: Store, worker_id: str, checkpoints: list[_Report], lost: set[Lease]
    ) -> None:
        async def write(part: Sequence[_Report]) -> set[UUID]:
            rows = [(r.claim, r.checkpoint) for r in part if r.checkpoint is not None]
            return await store_steps.save_checkpoints(store, worker_id, rows)

        await _write_last(checkpoints, write, lost, _log_refused_checkpoint)

    def _put_back(
        self, events: list[_Event], progressed: list[_Report], checkpoints: list[_Report]
    ) -> None:
        """Keep the reports that could not be sent, before the ones that came since."""
        kept: dict[Lease, _Report] = {}

        def old(claim: Claim) -> _Report:
            return kept.setdefault((claim.id, claim.attempt), _Report(claim))

        for report in progressed:
            old(report.claim).percent, old(report.claim).stage = report.percent, report.stage
        for report in checkpoints:
            old(report.claim).checkpoint = report.checkpoint
        for event in events:
            if event.dropped:
                old(event.claim).dropped += event.dropped
            else:
                old(event.claim).events.append(event)
        with self._lock:
            for report in kept.values():
                new = self._gathered.setdefault(report.claim.id, report)
                if new is not report and new.claim.attempt == report.claim.attempt:
                    _merge(report, new)


async def _write_last(
    reports: list[_Report],
    write: Callable[[Sequence[_Report]], Awaitable[set[UUID]]],
    lost: set[Lease],
    log_refused: Callable[[str], None],
) -> None:
    """Write the last value of each job; a written or refused one is removed from the list."""

    def written(part: Sequence[_Report], ours: set[UUID]) -> None:
        lost.update(_leases(report.claim for report in part if report.claim.id not in ours))
        del reports[: len(part)]

    async def refused(report: _Report, error: Exception) -> None:
        del reports[0]
        log_refused(_refusal(report.claim, error))

    if reports:
        await write_in_parts(list(reports), write, written, refused)


def _leases(claims: Iterable[Claim]) -> set[Lease]:
    return {(claim.id, claim.attempt) for claim in claims}


def _log_refused_progress(refusal: str) -> None:
    _log.error("progress.refused %s", refusal)


def _log_refused_checkpoint(refusal: str) -> None:
    _log.error("checkpoint.refused %s", refusal)


def _merge(old: _Report, new: _Report) -> None:
    new.percent = old.percent if new.percent is None else new.percent
    new.stage = old.stage if new.stage is None else new.stage
    new.checkpoint = old.checkpoint if new.checkpoint is None else new.checkpoint
    both = old.events + new.events
    new.events = both[:EVENTS_PER_FLUSH]
    new.dropped += old.dropped + len(both) - len(new.events)


def _fitting(events: Sequence[_Event]) -> int:
    """Return how many events fit into one call: many large events must be sent in parts."""
    size = 0
    for n, event in enumerate(events):
        size += len(event.data)
        if n and size > CALL:
            return n
    return len(events)


def _refusal(claim: Claim, error: Exception) -> str:
    return f"id={claim.id} type={claim.job_type} attempt={claim.attempt} error={describe(error)}"
