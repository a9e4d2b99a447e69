"""Open transaction: a transaction stays open while jobs come and go at 60 % of the highest rate.

It holds a snapshot, a transaction id or a cursor, so VACUUM cannot remove dead rows. First the
highest rate that producer and worker can sustain is measured. Then one minute without the
transaction follows, then the minutes with it, at 60 % of that rate. The last minute with it is
compared with the first. Claims are timed in the worker.

The p99 of a claim may grow by a quarter: so much does it differ between two undisturbed minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from bench.aggregate import percentile
from bench.case_record import CaseResult, Curve, Finding, Point
from bench.cases import Case, CaseContext
from bench.claim_timing import ClaimTiming
from bench.progress import show_progress
from bench.testbed import Testbed, rates_each_second

LOAD = 0.6
AHEAD = 10_000  # jobs that a producer may be ahead while the highest rate is measured
RATE_SEARCH = 0.2  # minutes
P99_GROWTH = 1.25
SHORTEST_WINDOW = 1.5  # seconds: a "minute" of a shortened run is at least so long
LONGEST_PAUSE = 1.0  # seconds without a claimed job

Hold = Callable[[Testbed], AbstractContextManager[None]]


def open_transaction(name: str, title: str, hold: Hold, *, minutes: float, bound: float) -> Case:
    def run(context: CaseContext) -> CaseResult:
        with context.testbed() as testbed:
            highest = sustainable_rate(testbed, context.seconds(RATE_SEARCH))
        show_progress(f"    {highest:,.0f} jobs/s can be sustained; {highest * LOAD:,.0f} are sent")
        held_seconds = context.seconds(minutes)
        with context.testbed() as testbed:
            window = max(held_seconds / minutes, SHORTEST_WINDOW)
            observed = observe(testbed, hold, highest * LOAD, held_seconds, window)
        return CaseResult(observed.findings(name, title, bound), observed.curves(name, title))

    return Case(name, title, run)


def sustainable_rate(testbed: Testbed, seconds: float) -> float:
    """Measure how many jobs per second can be enqueued and run at the same time."""
    with (
        testbed.worker() as worker,
        testbed.driver("produce", folder=worker.folder, seconds=seconds, ahead=AHEAD) as producer,
    ):
        producer.wait_until_ready()
        producer.send_start()
        rates = [rate for _, rate in rates_each_second(worker, seconds)]
    return fmean(rates[len(rates) // 3 :])


@dataclass(frozen=True, slots=True)
class Observed:
    """Rates and claims of the time before the transaction, and of the time with it."""

    held_seconds: float
    window: float  # seconds at both ends of the held time, which are compared
    before: list[Point]
    held: list[Point]
    held_at_ns: int
    claims: list[ClaimTiming]

    def findings(self, name: str, title: str, bound: float) -> list[Finding]:
        last_window = self.held_seconds - self.window
        first_rate, last_rate = fmean(self._rates(0)), fmean(self._rates(last_window))
        first_p99, last_p99 = self._p99(0), self._p99(last_window)
        rate_before = fmean([rate for _, rate in self.before])
        return [
            Finding(
                case=name,
                title=f"{title}, jobs/s, last to first"
                f" ({first_rate:,.0f}; {rate_before:,.0f} before)",
                measured=round(last_rate / first_rate, 3),
                sense="at least",
                bound=bound,
            ),
            Finding(
                case=name,
                title=f"the same, p99 of a claim, last to first ({first_p99:.1f} ms)",
                measured=round(last_p99 / first_p99, 3),
                sense="at most",
                bound=P99_GROWTH,
            ),
            Finding(
                case=name,
                title="the same, longest time without a job",
                measured=round(self._longest_pause(), 3),
                sense="below",
                bound=LONGEST_PAUSE,
                unit=" s",
            ),
        ]

    def curves(self, name: str, title: str) -> list[Curve]:
        seconds_before = self.before[-1][0]
        before = [(round(at - seconds_before, 2), rate) for at, rate in self.before]
        return [
            Curve(
                case=name,
                title=title,
                x_label="seconds since the transaction began",
                y_label="jobs/s",
                series={"before": before, "held": self.held},
            ),
            Curve(
                case=name,
                title=f"{title}: claims",
                x_label="seconds since the transaction began",
                y_label="ms, p99 of each second",
                series={
                    "before": self._p99_each_second(-seconds_before, 0),
                    "held": self._p99_each_second(0, self.held_seconds),
                },
            ),
        ]

    def _rates(self, since: float) -> list[float]:
        return [rate for at, rate in self.held if since < at <= since + self.window]

    def _p99(self, since: float) -> float:
        claims = [ms for at, ms in self._claims_ms() if since <= at < since + self.window]
        return percentile(claims, 99)

    def _p99_each_second(self, since: float, until: float) -> list[Point]:
        seconds: dict[int, list[float]] = {}
        for at, ms in self._claims_ms():
            if since <= at < until:
                seconds.setdefault(int(at // 1), []).append(ms)
        return [(at, round(percentile(claims, 99), 3)) for at, claims in sorted(seconds.items())]

    def _longest_pause(self) -> float:
        """Return the longest time between two claims that got jobs, in the held time."""
        ends = [self.held_at_ns]
        ends += [claim.began_ns + claim.took_ns for claim in self.claims if claim.jobs]
        ends = sorted(at for at in ends if at >= self.held_at_ns)
        ends.append(max(ends[-1], self.held_at_ns + int(self.held_seconds * 1e9)))
        return max(later - earlier for earlier, later in pairwise(ends)) / 1e9

    def _claims_ms(self) -> list[Point]:
        """Return each claim: seconds since the transaction began, and its milliseconds."""
        return [
            ((claim.began_ns - self.held_at_ns) / 1e9, claim.took_ns / 1e6) for claim in self.claims
        ]


def observe(
    testbed: Testbed, hold: Hold, rate: float, held_seconds: float, window: float
) -> Observed:
    with ExitStack() as stack:
        worker = stack.enter_context(testbed.worker(time_claims=True))
        seconds = window + held_seconds + 5
        producer = stack.enter_context(
            testbed.driver("produce", folder=worker.folder, rate=rate, seconds=seconds)
        )
        producer.wait_until_ready()
        producer.send_start()
        testbed.wait_for_calls(worker, 1)
        before = rates_each_second(worker, window)
        stack.enter_context(hold(testbed))
        held_at_ns = time.monotonic_ns()
        held = rates_each_second(worker, held_seconds)
        return Observed(held_seconds, window, before, held, held_at_ns, worker.claims())


@contextmanager
def hold_snapshot(testbed: Testbed) -> Generator[None]:
    with testbed.connect(autocommit=False) as connection:
        connection.execute("set transaction isolation level repeatable read")
        connection.execute("select count(*) from howdah.options")
        yield
        connection.rollback()


@contextmanager
def hold_transaction_id(testbed: Testbed) -> Generator[None]:
    testbed.execute("create table ledger (entry text)")
    with testbed.connect(autocommit=False) as connection:
        connection.execute("insert into ledger values ('not committed yet')")
        yield
        connection.rollback()


@contextmanager
def hold_cursor(testbed: Testbed) -> Generator[None]:
    with testbed.connect(autocommit=False) as connection:
        connection.execute("declare reading cursor for select * from howdah.jobs")
        connection.execute("fetch 1 from reading")
        yield
        connection.rollback()


SNAPSHOT = open_transaction(
    "snapshot", "a snapshot held for 10 minutes", hold_snapshot, minutes=10, bound=0.95
)
WRITER = open_transaction(
    "writer", "a writer's transaction held", hold_transaction_id, minutes=3, bound=0.9
)
CURSOR = open_transaction("cursor", "a cursor on jobs held open", hold_cursor, minutes=3, bound=0.9)
