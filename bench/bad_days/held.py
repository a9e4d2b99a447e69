"""Held: somebody holds a transaction open while jobs come and go at 60 % of what can be kept up.

A snapshot, a writer's transaction id, or a cursor: what is dead cannot be cleaned away as long as
it is held. First the rate is found that producer and worker can keep up together. Then come a good
minute and the bad ones, at 60 % of that rate. The first and the last minute of the bad time are
compared, and the good one stands beside them in the picture. Claims are timed in the worker.

"Not growing" allows a quarter: so much do the p99 of two minutes of a good day differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise

from bench.cases import Case, Stage, tell
from bench.figures import percentile
from bench.findings import Curve, Finding, Point, Seen
from bench.yard import Claimed, Yard, every_second

LOAD = 0.6
AHEAD = 10_000  # jobs a producer may be ahead while the highest rate is sought
SEEKING = 0.2  # minutes
GROWING = 1.25
SHORTEST_WINDOW = 1.5  # seconds: in a shortened run, a minute is that long at least
STALL = 1.0  # seconds without a single job

Hold = Callable[[Yard], AbstractContextManager[None]]


def held(name: str, title: str, hold: Hold, *, minutes: float, bound: float) -> Case:
    def run(stage: Stage) -> Seen:
        with stage.yard() as yard:
            highest = sustainable(yard, stage.seconds(SEEKING))
        tell(f"    {highest:,.0f} jobs/s can be kept up; {highest * LOAD:,.0f} are handed over")
        bad_time = stage.seconds(minutes)
        with stage.yard() as yard:
            window = max(bad_time / minutes, SHORTEST_WINDOW)
            watched = watch(yard, hold, highest * LOAD, bad_time, window)
        return Seen(watched.findings(name, title, bound), watched.curves(name, title))

    return Case(name, title, run)


def sustainable(yard: Yard, seconds: float) -> float:
    """Find how many jobs per second can be handed over and handled at the same time."""
    with (
        yard.worker() as worker,
        yard.hands("produce", folder=worker.folder, seconds=seconds, ahead=AHEAD) as producer,
    ):
        producer.wait_until_ready()
        producer.go()
        rates = [rate for _, rate in every_second(worker, seconds)]
    steady = rates[len(rates) // 3 :]
    return sum(steady) / len(steady)


@dataclass(frozen=True, slots=True)
class Watched:
    """What was seen in one good stretch and the bad time after it."""

    bad_time: float
    window: float  # what is compared: the first and the last minute
    good: list[Point]
    bad: list[Point]
    held_at_ns: int
    claims: list[Claimed]

    def findings(self, name: str, title: str, bound: float) -> list[Finding]:
        first, last = self._rates(0), self._rates(self.bad_time - self.window)
        p99_first, p99_last = self._p99(0), self._p99(self.bad_time - self.window)
        rate, p99 = _mean(first), percentile(p99_first, 99)
        good = _mean([rate for _, rate in self.good])
        return [
            Finding(
                case=name,
                title=f"{title}, jobs/s, last to first ({rate:,.0f}; {good:,.0f} before)",
                measured=round(_mean(last) / rate, 3),
                sense="at least",
                bound=bound,
            ),
            Finding(
                case=name,
                title=f"the same, p99 of a claim, last to first ({p99:.1f} ms)",
                measured=round(percentile(p99_last, 99) / p99, 3),
                sense="at most",
                bound=GROWING,
            ),
            Finding(
                case=name,
                title="the same, longest time without a job",
                measured=round(self._longest_pause(), 3),
                sense="below",
                bound=STALL,
                unit=" s",
            ),
        ]

    def curves(self, name: str, title: str) -> list[Curve]:
        good_time = self.good[-1][0]
        shifted = [(round(at - good_time, 2), rate) for at, rate in self.good]
        return [
            Curve(
                case=name,
                title=title,
                across="seconds since it is held",
                upward="jobs/s",
                lines={"before": shifted, "held": self.bad},
            ),
            Curve(
                case=name,
                title=f"{title}: claims",
                across="seconds since it is held",
                upward="ms, p99 of each second",
                lines={
                    "before": self._p99_each_second(-good_time, 0),
                    "held": self._p99_each_second(0, self.bad_time),
                },
            ),
        ]

    def _rates(self, since: float) -> list[float]:
        return [rate for at, rate in self.bad if since < at <= since + self.window]

    def _p99(self, since: float) -> list[float]:
        return [ms for at, ms in self._timed() if since <= at < since + self.window]

    def _p99_each_second(self, since: float, until: float) -> list[Point]:
        seconds: dict[int, list[float]] = {}
        for at, ms in self._timed():
            if since <= at < until:
                seconds.setdefault(int(at // 1), []).append(ms)
        return [(at, round(percentile(found, 99), 3)) for at, found in sorted(seconds.items())]

    def _longest_pause(self) -> float:
        """Return the longest time between two claims that brought jobs, since it is held."""
        ends = [self.held_at_ns]
        ends += [one.began_ns + one.took_ns for one in self.claims if one.jobs]
        ends = sorted(at for at in ends if at >= self.held_at_ns)
        ends.append(max(ends[-1], self.held_at_ns + int(self.bad_time * 1e9)))
        return max(later - earlier for earlier, later in pairwise(ends)) / 1e9

    def _timed(self) -> list[Point]:
        """Return when each claim began, in seconds since it is held, and its milliseconds."""
        return [((one.began_ns - self.held_at_ns) / 1e9, one.took_ns / 1e6) for one in self.claims]


def watch(yard: Yard, hold: Hold, rate: float, bad_time: float, window: float) -> Watched:
    with ExitStack() as stack:
        worker = stack.enter_context(yard.worker(claims=True))
        producer = stack.enter_context(
            yard.hands("produce", folder=worker.folder, rate=rate, seconds=window + bad_time + 5)
        )
        producer.wait_until_ready()
        producer.go()
        yard.watch(worker, 1)  # until the first call
        good = every_second(worker, window)
        stack.enter_context(hold(yard))
        held_at_ns = time.monotonic_ns()
        bad = every_second(worker, bad_time)
        return Watched(bad_time, window, good, bad, held_at_ns, worker.claims())


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


@contextmanager
def a_snapshot(yard: Yard) -> Generator[None]:
    with yard.connect(autocommit=False) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from howdah.options")
        yield
        connection.rollback()


@contextmanager
def a_writer(yard: Yard) -> Generator[None]:
    yard.execute("create table ledger (entry text)")
    with yard.connect(autocommit=False) as connection:
        connection.execute("insert into ledger values ('not committed yet')")
        yield
        connection.rollback()


@contextmanager
def a_cursor(yard: Yard) -> Generator[None]:
    with yard.connect(autocommit=False) as connection:
        connection.execute("declare reading cursor for select * from howdah.jobs")
        connection.execute("fetch 1 from reading")
        yield
        connection.rollback()


SNAPSHOT = held("snapshot", "a snapshot held for 10 minutes", a_snapshot, minutes=10, bound=0.95)
WRITER = held("writer", "a writer's transaction held", a_writer, minutes=3, bound=0.9)
CURSOR = held("cursor", "a cursor on jobs held open", a_cursor, minutes=3, bound=0.9)
