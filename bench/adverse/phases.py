"""Phases: a clean one, one under stress, and the recovery, in one run without a break.

A producer and a worker go on all the time. Each pickup is measured: from the call that enqueues the
job to the first line of its handler. What the last third of the stress shows is compared with the
clean phase, and so is the recovery from SETTLED_AFTER seconds on.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import pairwise

from bench.adverse.regime import Regime
from bench.aggregate import percentile
from bench.case_record import Curve, Finding, Point
from bench.measure.prepared_peer import InvalidMeasurement
from bench.pickup_log import Pickup, read_pickups
from bench.table_samples import Sample, sampling
from bench.testbed import Testbed

WARM_UP = 3.0  # seconds that count for nothing
SPARE = 30.0  # seconds for which the producer could go on
SETTLED_AFTER = 5.0  # seconds after the stress until everything is as before
RATE_LEFT, P50_GROWTH, P99_GROWTH = 0.95, 1.25, 1.5
LONGEST_PAUSE = 1.0  # seconds without a job
SHOWN = 5  # statements and wait events in a chart
TABLE = "jobs_live"

Hold = Callable[[Testbed], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class Lengths:
    """How many seconds each phase lasts."""

    clean: float
    stress: float
    recovery: float

    @property
    def total(self) -> float:
        return self.clean + self.stress + self.recovery

    @property
    def settled_after(self) -> float:
        return min(SETTLED_AFTER, self.recovery / 2)

    @property
    def in_clean(self) -> tuple[float, float]:
        return -self.clean, 0.0

    @property
    def in_late_stress(self) -> tuple[float, float]:
        return self.stress * 2 / 3, self.stress

    @property
    def in_settled(self) -> tuple[float, float]:
        return self.stress + self.settled_after, self.stress + self.recovery


@dataclass(frozen=True, slots=True)
class Part:
    """The jobs that began within one part of a run."""

    seconds: float
    ms: list[float]  # how long each waited

    @property
    def rate(self) -> float:
        return len(self.ms) / self.seconds

    def pickup(self, percent: float) -> float:
        if not self.ms:
            raise InvalidMeasurement("no job began in a part of the run")
        return percentile(self.ms, percent)


@dataclass(frozen=True, slots=True)
class Phases:
    """One run: its jobs and its samples. Times are seconds since the stress began."""

    lengths: Lengths
    pickups: list[tuple[float, float]]  # when each handler began, and its pickup in ms
    samples: list[tuple[float, Sample]]

    def part(self, since: float, until: float) -> Part:
        return Part(until - since, [ms for at, ms in self.pickups if since <= at < until])

    @property
    def clean(self) -> Part:
        return self.part(*self.lengths.in_clean)

    @property
    def late_stress(self) -> Part:
        return self.part(*self.lengths.in_late_stress)

    @property
    def settled(self) -> Part:
        return self.part(*self.lengths.in_settled)

    def longest_pause(self) -> float:
        """Return the longest time without a job that began, while under stress."""
        end = self.lengths.stress
        began = [0.0, *(at for at, _ in self.pickups if 0 <= at < end), end]
        return max(later - earlier for earlier, later in pairwise(began))

    def samples_within(self, since: float, until: float) -> list[Sample]:
        return [sample for at, sample in self.samples if since <= at < until]

    def by_second(self) -> list[tuple[int, list[float]]]:
        """Return the pickups of each second, without the parts of a second at both ends."""
        by_second: defaultdict[int, list[float]] = defaultdict(list)
        for at, ms in self.pickups:
            by_second[int(at // 1)].append(ms)
        return sorted(by_second.items())[1:-1]

    def findings(self, case: str, title: str) -> list[Finding]:
        clean, stress, settled = self.clean, self.late_stress, self.settled
        return [
            *_compare(case, title, clean, stress),
            Finding(
                case=case,
                title="the same, longest time without a job",
                measured=round(self.longest_pause(), 3),
                sense="below",
                bound=LONGEST_PAUSE,
                unit=" s",
            ),
            *_compare(case, f"{title}: afterwards", clean, settled),
        ]

    def curves(self, case: str, title: str) -> list[Curve]:
        seconds, samples = self.by_second(), self.samples

        def curve(name: str, y_label: str, series: dict[str, list[Point]]) -> Curve:
            return Curve(
                case=case,
                title=f"{title}: {name}" if name else title,
                x_label=f"seconds since the stress began, which lasts {self.lengths.stress:g} s",
                y_label=y_label,
                series=series,
            )

        return [
            curve("", "jobs/s", {"began": [(at, float(len(ms))) for at, ms in seconds]}),
            curve(
                "pickup",
                "ms",
                {
                    f"p{percent}": [(at, round(percentile(ms, percent), 3)) for at, ms in seconds]
                    for percent in (50, 99)
                },
            ),
            curve(
                "dead rows of jobs_live",
                "rows",
                {"dead": [(round(at, 1), _dead_rows(sample)) for at, sample in samples]},
            ),
            curve("size of jobs_live", "MB", _over_time(samples, _megabytes, 99)),
            curve("active sessions", "by statement", _over_time(samples, _statements, SHOWN)),
            curve("active sessions", "by wait event", _over_time(samples, _waits, SHOWN)),
        ]


def _compare(case: str, title: str, clean: Part, other: Part) -> list[Finding]:
    return [
        Finding(
            case=case,
            title=f"{title}, jobs/s ({clean.rate:,.0f} before)",
            measured=round(other.rate / clean.rate, 3),
            sense="at least",
            bound=RATE_LEFT,
        ),
        *(
            Finding(
                case=case,
                title=f"the same, pickup p{percent} ({clean.pickup(percent):.2f} ms before)",
                measured=round(other.pickup(percent) / clean.pickup(percent), 3),
                sense="at most",
                bound=bound,
            )
            for percent, bound in ((50, P50_GROWTH), (99, P99_GROWTH))
        ),
    ]


def _dead_rows(sample: Sample) -> float:
    return float(sample.tables[TABLE].dead_rows)


def _megabytes(sample: Sample) -> dict[str, float]:
    return {name: round(size / 1e6, 2) for name, size in sample.tables[TABLE].sizes.items()}


def _statements(sample: Sample) -> dict[str, float]:
    return sample.statements


def _waits(sample: Sample) -> dict[str, float]:
    return sample.waits


def _over_time(
    samples: Sequence[tuple[float, Sample]], read: Callable[[Sample], dict[str, float]], most: int
) -> dict[str, list[Point]]:
    """Return a series for each name, those with the largest values first."""
    totals: defaultdict[str, float] = defaultdict(float)
    for _, sample in samples:
        for name, value in read(sample).items():
            totals[name] += value
    names = sorted(totals, key=lambda name: -totals[name])[:most]
    return {
        name: [(round(at, 1), read(sample).get(name, 0.0)) for at, sample in samples]
        for name in names
    }


def run_phases(testbed: Testbed, regime: Regime, lengths: Lengths, hold: Hold) -> Phases:
    """Let a producer and a worker go through the three phases."""
    seconds = WARM_UP + lengths.total + SPARE
    with regime.at_work(testbed, seconds) as worker, sampling(testbed.dsn) as samples:
        stress_ns = go_through(lengths, hold(testbed))
        worker.driver.check_alive()
        return since_stress(lengths, stress_ns, read_pickups(worker.folder), samples)


def go_through(lengths: Lengths, stress: AbstractContextManager[None]) -> int:
    """Let the three phases pass; return when the stress began."""
    time.sleep(WARM_UP + lengths.clean)
    with stress:
        stress_ns = time.monotonic_ns()
        time.sleep(lengths.stress)
    time.sleep(lengths.recovery)
    return stress_ns


def since_stress(
    lengths: Lengths, stress_ns: int, pickups: Sequence[Pickup], samples: Sequence[Sample]
) -> Phases:
    """Return what was measured from the clean phase on, in seconds since the stress began."""

    def at(moment_ns: int) -> float:
        return (moment_ns - stress_ns) / 1e9

    return Phases(
        lengths,
        [(at(p.began_ns), p.ms) for p in pickups if at(p.began_ns) >= -lengths.clean],
        [(at(s.at_ns), s) for s in samples if at(s.at_ns) >= -lengths.clean],
    )
