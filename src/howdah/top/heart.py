"""Heart: what was seen of the queue last, and what went wrong while looking.

Comes after   observe/, which answers
Comes before  the panes, which show

It never raises what the database does: whatever goes wrong is a sentence in `trouble`, what was
seen before stays, and the next look tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from howdah import observe
from howdah.errors import HowdahError, Unreachable
from howdah.observe.doctor import Diagnosis
from howdah.observe.problems import found
from howdah.observe.wording import length
from howdah.store import Store
from howdah.store.query import spending
from howdah.top.pace import Pace

WITHIN = timedelta(milliseconds=500)  # for one part of a look
DEPTH = 1_000  # failed jobs that are looked at
AWAY = 2.0  # seconds between tries while the database is away
UNSEEN = Diagnosis(checks=[])


@dataclass(frozen=True)
class Seen:
    """How things were at the last look."""

    overview: observe.Overview | None = None
    workers: list[observe.WorkerNow] = field(default_factory=list[observe.WorkerNow])
    failures: observe.Failures | None = None
    diagnosis: Diagnosis = UNSEEN
    at: datetime | None = None  # by this machine's clock
    trouble: str | None = None

    @property
    def problems(self) -> list[observe.Problem]:
        """What a person should look at, worst first."""
        if self.overview is None:
            return []
        return found(self.overview, self.workers, self.diagnosis)


class Heart:
    """Looks at the queue, each part when it is due."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self.seen: Seen = Seen()
        self._store = store
        self._clock = clock
        self._queue = Pace(0.75, 1.0, clock)
        self._failures = Pace(0.1, 3.0, clock)
        self._health = Pace(0.1, 10.0, clock)
        self._troubles: dict[Pace, str] = {}

    def wait(self, failures: bool) -> float:
        """Seconds until something is due to be looked at."""
        return min(pace.wait for pace in self._paces(failures))

    @property
    def slow(self) -> float | None:
        """Seconds until the next look, when the last one was so slow that it is worth a word."""
        return self._queue.wait if self._queue.wait > AWAY else None

    def hurry(self) -> None:
        """Look at the queue at once: a person asked, or did something."""
        self._queue.hurry()
        self._failures.hurry()

    def _paces(self, failures: bool) -> list[Pace]:
        shown = [self._failures] if failures else []
        return [self._queue, self._health, *shown]

    async def look(self, failures: bool = False) -> Seen:
        """Look at what is due; at the groups of failures only while somebody sees them."""
        for pace in self._paces(failures):
            if pace.wait:
                continue
            with spending() as spent:
                try:
                    self.seen = await self._part(pace)
                except Unreachable as error:
                    for one in self._paces(failures):
                        one.missed(AWAY)
                    self._troubles = {self._queue: self._away(error)}
                    break
                except HowdahError as error:
                    self._troubles[pace] = self._late(error)
                else:
                    self._troubles.pop(pace, None)
            pace.looked(spent.seconds)
        self.seen = replace(self.seen, trouble=next(iter(self._troubles.values()), None))
        return self.seen

    async def _part(self, pace: Pace) -> Seen:
        if pace is self._failures:
            seen = await observe.failures(self._store, depth=DEPTH, within=WITHIN)
            return replace(self.seen, failures=seen)
        if pace is self._health:
            diagnosis = await observe.examine(self._store, within=WITHIN)
            return replace(self.seen, diagnosis=diagnosis)
        overview = await observe.overview(self._store, within=WITHIN)
        workers = await observe.crew(self._store, within=WITHIN)
        return replace(
            self.seen,
            overview=overview,
            workers=workers,
            at=datetime.now().astimezone(),
        )

    def _away(self, error: Unreachable) -> str:
        return f"The database is away, trying again{self._shown()}: {error}"

    def _late(self, error: HowdahError) -> str:
        if isinstance(error, observe.TookTooLong):
            return f"The database took longer than {length(WITHIN)}{self._shown()}."
        return f"Cannot look{self._shown()}: {error}"

    def _shown(self) -> str:
        """Say how old the picture is that stays on the screen."""
        return f" (this is of {self.seen.at:%H:%M:%S})" if self.seen.at else ""
