"""Reports: progress and events on their way to the store.

A handler's report costs a few memory writes. The worker sends what has gathered a few times
a second, all its jobs in one statement: of progress the last value, of events every one up to
a limit per job, the surplus counted in a note. A job's reports are sent before its ending.
"""

from __future__ import annotations

from uuid import UUID

from howdah import payload
from howdah.errors import BadInput
from howdah.events import DROPPED
from howdah.job import Claim
from howdah.store import Store, call

EVENTS_PER_FLUSH = 100  # per job; at four flushes a second, 400 events a second are kept
MAX_EVENT_BYTES = 64 * 1024
_NUMBER = (int, float)  # made once: handlers call this often


class _Report:
    __slots__ = ("claim", "dropped", "events", "percent", "stage")

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self.percent: int | None = None
        self.stage: str | None = None
        self.events: list[tuple[str, str]] = []
        self.dropped = 0


class Reports:
    """What the running jobs of a worker have to say. Safe to call from any thread."""

    def __init__(self) -> None:
        self._gathered: dict[UUID, _Report] = {}

    def __bool__(self) -> bool:
        return bool(self._gathered)

    def progress(self, claim: Claim, percent: float | None, stage: str | None) -> None:
        if percent is not None and (
            not isinstance(percent, _NUMBER)  # pyright: ignore[reportUnnecessaryIsInstance]
            or not 0 <= percent <= 100  # which NaN is not either
        ):
            raise BadInput(f"progress goes from 0 to 100, not {percent!r}")
        if stage is not None and (len(stage) > 1000 or not payload.is_text(stage)):
            raise BadInput(
                "a stage is text of up to 1000 characters without NUL or half surrogate pairs"
            )
        report = self._of(claim)
        if percent is not None:
            report.percent = int(percent)
        if stage is not None:
            report.stage = stage

    def emit(self, claim: Claim, kind: str, data: object) -> None:
        if not isinstance(kind, str) or not (1 <= len(kind) <= 200 and payload.is_text(kind)):  # pyright: ignore
            raise BadInput(f"the kind of an event is text of 1 to 200 characters, not {kind!r}")
        encoded = payload.encode(data, f"the event {kind!r}", limit=MAX_EVENT_BYTES)
        report = self._of(claim)
        if len(report.events) < EVENTS_PER_FLUSH:
            report.events.append((kind, encoded))
        else:
            report.dropped += 1

    def _of(self, claim: Claim) -> _Report:
        report = self._gathered.get(claim.id)
        if report is None or report.claim.attempt != claim.attempt:
            report = self._gathered[claim.id] = _Report(claim)
        return report

    async def flush(self, store: Store, worker_id: str) -> set[UUID]:
        """Send what has gathered; returns the jobs that turned out not to be ours any more."""
        if not self._gathered:
            return set()
        reports, self._gathered = list(self._gathered.values()), {}
        steps = [(r.claim, r.percent, r.stage) for r in reports if r.percent is not None or r.stage]
        events = [(r.claim, kind, data) for r in reports for kind, data in r.events]
        events += [(r.claim, DROPPED, f'{{"count":{r.dropped}}}') for r in reports if r.dropped]
        lost: set[UUID] = set()
        try:
            # events first: a follower that sees the progress they led to must find them
            if events:
                lost |= {c.id for c, _, _ in events} - await call.emit(store, worker_id, events)
                for report in reports:
                    report.events, report.dropped = [], 0
            if steps:
                lost |= {c.id for c, _, _ in steps} - await call.progress(store, worker_id, steps)
        except BaseException:
            self._put_back(reports)
            raise
        return lost

    def _put_back(self, reports: list[_Report]) -> None:
        """Keep what could not be sent, below what has gathered since."""
        for old in reports:
            new = self._gathered.setdefault(old.claim.id, old)
            if new is not old:
                new.percent = old.percent if new.percent is None else new.percent
                new.stage = old.stage if new.stage is None else new.stage
                kept = (old.events + new.events)[:EVENTS_PER_FLUSH]
                new.dropped += old.dropped + len(old.events) + len(new.events) - len(kept)
                new.events = kept
