"""Poller: reads the queue through observe/ and keeps the last snapshot for the screens.

It raises no error of the database. An error becomes a sentence in `Snapshot.error`, the last
data stays, and the next poll tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from howdah import observe
from howdah.errors import HowdahError, Unreachable
from howdah.observe.doctor import Diagnosis
from howdah.observe.problems import problems_in
from howdah.store import Store
from howdah.store.query import server_time
from howdah.text.wording import length
from howdah.top.throttle import Throttle

TIME_LIMIT = timedelta(milliseconds=500)  # for one part of a poll
FAILURE_DEPTH = 1_000  # failed jobs that are read
RETRY_AFTER = 2.0  # seconds between polls while the database is unreachable
NO_DIAGNOSIS = Diagnosis(checks=[])


@dataclass(frozen=True)
class Snapshot:
    """The queue at the last poll."""

    overview: observe.Overview | None = None
    workers: list[observe.WorkerNow] = field(default_factory=list[observe.WorkerNow])
    failures: observe.Failures | None = None
    diagnosis: Diagnosis = NO_DIAGNOSIS
    at: datetime | None = None  # by this machine's clock
    error: str | None = None

    @property
    def problems(self) -> list[observe.Problem]:
        """What needs a person, worst first."""
        if self.overview is None:
            return []
        return problems_in(self.overview, self.workers, self.diagnosis)


class Poller:
    """Reads each part of the queue when it is due."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.snapshot: Snapshot = Snapshot()
        self._store = store
        self._clock = clock
        self._queue = Throttle(0.75, 1.0, clock)
        self._failures = Throttle(0.1, 3.0, clock)
        self._health = Throttle(0.1, 10.0, clock)
        self._errors: dict[Throttle, str] = {}

    def wait(self, failures: bool) -> float:
        """Return the seconds until a part is due."""
        return min(throttle.wait for throttle in self._throttles(failures))

    @property
    def slow_wait(self) -> float | None:
        """Seconds until the next poll, if the wait is long enough to be shown."""
        return self._queue.wait if self._queue.wait > RETRY_AFTER else None

    def poll_now(self) -> None:
        """Make the next poll read the queue: a person asked for it, or changed something."""
        self._queue.make_due()
        self._failures.make_due()

    def _throttles(self, failures: bool) -> list[Throttle]:
        shown = [self._failures] if failures else []
        return [self._queue, self._health, *shown]

    async def poll(self, failures: bool = False) -> Snapshot:
        """Read the parts that are due; the failures only while their pane is shown."""
        for throttle in self._throttles(failures):
            if throttle.wait:
                continue
            with server_time() as spent:
                try:
                    self.snapshot = await self._read_part(throttle)
                except Unreachable as error:
                    for each in self._throttles(failures):
                        each.skip(RETRY_AFTER)
                    self._errors = {self._queue: self._unreachable(error)}
                    break
                except HowdahError as error:
                    self._errors[throttle] = self._failed(error)
                else:
                    self._errors.pop(throttle, None)
            throttle.record(spent.seconds)
        self.snapshot = replace(self.snapshot, error=next(iter(self._errors.values()), None))
        return self.snapshot

    async def _read_part(self, throttle: Throttle) -> Snapshot:
        if throttle is self._failures:
            failures = await observe.failures(self._store, depth=FAILURE_DEPTH, within=TIME_LIMIT)
            return replace(self.snapshot, failures=failures)
        if throttle is self._health:
            diagnosis = await observe.examine(self._store, within=TIME_LIMIT)
            return replace(self.snapshot, diagnosis=diagnosis)
        overview = await observe.overview(self._store, within=TIME_LIMIT)
        workers = await observe.workers(self._store, within=TIME_LIMIT)
        return replace(
            self.snapshot,
            overview=overview,
            workers=workers,
            at=datetime.now().astimezone(),
        )

    def _unreachable(self, error: Unreachable) -> str:
        return f"Cannot reach the database, trying again{self._data_age()}: {error}"

    def _failed(self, error: HowdahError) -> str:
        if isinstance(error, observe.TookTooLong):
            return f"The database took longer than {length(TIME_LIMIT)}{self._data_age()}."
        return f"Cannot read the queue{self._data_age()}: {error}"

    def _data_age(self) -> str:
        """Return the time of the data on the screen, as a remark."""
        return f" (this is the data of {self.snapshot.at:%H:%M:%S})" if self.snapshot.at else ""
