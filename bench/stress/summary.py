"""Summary: what one run showed, from its pickups, its samples and its sent jobs.

The job tables of a peer are those of its database whose rows are updated or deleted while jobs run.
The others only grow: they are a history or a log.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from bench.adverse.phases import Phases
from bench.aggregate import percentile
from bench.case_record import Point
from bench.pickup_log import Pickup
from bench.stress.record import OverTime, Phase, PhaseResult, TableResult
from bench.stress.stresses import Stress
from bench.table_samples import Sample, TableSample

SHOWN = 4  # wait events, and tables
FEWEST = 0.95  # part of the rate that a peer has to reach in the clean phase

Window = tuple[float, float]
Calls = Sequence[tuple[float, float]]  # when each job was sent, and the ms until the answer


def phase_results(run: Phases, stress: Stress, calls: Calls = ()) -> list[PhaseResult]:
    """Return the results of the three phases; `calls` are those of the producer."""
    lengths = run.lengths
    windows: dict[Phase, Window] = {
        "clean": lengths.in_clean,
        "stress": (0.0, lengths.stress) if stress.chaos else lengths.in_late_stress,
        "recovery": lengths.in_settled,
    }
    tables = job_tables(run)
    return [_phase_result(run, phase, window, tables, calls) for phase, window in windows.items()]


def _phase_result(
    run: Phases, phase: Phase, window: Window, tables: set[str], calls: Calls
) -> PhaseResult:
    since, until = window
    jobs, samples = run.part(since, until), run.samples_within(since, until)
    answers = [ms for at, ms in calls if since <= at < until]
    return PhaseResult(
        phase=phase,
        rate=round(jobs.rate, 1),
        p50_ms=round(jobs.pickup(50), 2) if jobs.ms else None,
        p99_ms=round(jobs.pickup(99), 2) if jobs.ms else None,
        enqueue_p50_ms=round(percentile(answers, 50), 2) if answers else None,
        dead_rows=max((dead_rows(sample, tables) for sample in samples), default=None),
        table_mb=max((table_mb(sample, tables) for sample in samples), default=None),
        index_mb=max((index_mb(sample, tables) for sample in samples), default=None),
        waits=waits(samples),
    )


def waits(samples: Sequence[Sample]) -> dict[str, float]:
    """Return how many sessions were active on average, by what they waited for."""
    totals: defaultdict[str, float] = defaultdict(float)
    for sample in samples:
        for name, sessions in sample.waits.items():
            totals[name] += sessions
    averages = {name: round(total / len(samples), 2) for name, total in totals.items()}
    return dict(sorted(averages.items(), key=lambda entry: -entry[1])[:SHOWN])


def job_tables(run: Phases) -> set[str]:
    """Return the names of the tables whose rows were updated or deleted in this run."""
    changes: defaultdict[str, list[int]] = defaultdict(list)
    for _, sample in run.samples:
        for table in sample.tables.values():
            changes[table.name].append(table.changes)
    return {name for name, counts in changes.items() if max(counts) > 0}


def table_results(run: Phases) -> list[TableResult]:
    """Return the largest job tables."""
    results = [_table_result(run, name) for name in job_tables(run)]
    return sorted(results, key=lambda result: -result.mb_most)[:SHOWN]


def _table_result(run: Phases, name: str) -> TableResult:
    found = [(at, sample.tables[name]) for at, sample in run.samples if name in sample.tables]
    return TableResult(
        name=name,
        dead_rows=max(table.dead_rows for _, table in found),
        mb_clean=max((_mb(table) for at, table in found if at < 0), default=0.0),
        mb_most=max(_mb(table) for _, table in found),
        mb_last=_mb(found[-1][1]),
    )


def history_mb(run: Phases) -> float:
    if not run.samples:
        return 0.0
    tables, (_, last) = job_tables(run), run.samples[-1]
    return round(sum(_mb(table) for table in last.tables.values() if table.name not in tables), 1)


def _mb(table: TableSample) -> float:
    return _in_mb(sum(table.sizes.values()))


def _in_mb(size: int) -> float:
    return round(size / 1e6, 1)


def dead_rows(sample: Sample, tables: set[str]) -> int:
    return sum(table.dead_rows for table in _of(sample, tables))


def table_mb(sample: Sample, tables: set[str]) -> float:
    return _in_mb(sum(table.table_bytes for table in _of(sample, tables)))


def index_mb(sample: Sample, tables: set[str]) -> float:
    return _in_mb(sum(table.index_bytes for table in _of(sample, tables)))


def _of(sample: Sample, tables: set[str]) -> Iterable[TableSample]:
    return (table for table in sample.tables.values() if table.name in tables)


def over_time(run: Phases) -> OverTime:
    seconds, tables = run.by_second(), job_tables(run)
    samples = [(round(at, 1), sample) for at, sample in run.samples]

    def pickups(percent: int) -> list[Point]:
        return [(at, round(percentile(ms, percent), 2)) for at, ms in seconds]

    return OverTime(
        rate=[(at, float(len(ms))) for at, ms in seconds],
        p50_ms=pickups(50),
        p99_ms=pickups(99),
        dead_rows=[(at, float(dead_rows(sample, tables))) for at, sample in samples],
        table_mb=[(at, table_mb(sample, tables)) for at, sample in samples],
        index_mb=[(at, index_mb(sample, tables)) for at, sample in samples],
    )


class Jobs:
    """The jobs of a run: which were enqueued, and which began, how often."""

    def __init__(self, sent: Iterable[tuple[int, int]], pickups: Sequence[Pickup]) -> None:
        self._calls = dict(sent)  # by the time at which a job was sent: the answer, or 0
        self._pickups = pickups
        self._runs = Counter(pickup.sent_ns for pickup in pickups)

    @property
    def answered(self) -> int:
        return sum(answered_ns > 0 for answered_ns in self._calls.values())

    @property
    def failed(self) -> int:
        return len(self._calls) - self.answered

    @property
    def ran_twice(self) -> int:
        return sum(times > 1 for times in self._runs.values())

    @property
    def never_began(self) -> int:
        return sum(
            answered_ns > 0 and sent_ns not in self._runs
            for sent_ns, answered_ns in self._calls.items()
        )

    def answers(self, stress_ns: int) -> Calls:
        """Return the calls that were answered, in seconds since the stress began."""
        return [
            ((sent_ns - stress_ns) / 1e9, (answered_ns - sent_ns) / 1e6)
            for sent_ns, answered_ns in self._calls.items()
            if answered_ns
        ]

    def done_after(self, end_ns: int) -> float:
        """Return the seconds from `end_ns` until the last job that was sent before it began."""
        began = [pickup.began_ns for pickup in self._pickups if pickup.sent_ns < end_ns]
        return round(max(0, max(began, default=0) - end_ns) / 1e9, 2)


def too_slow(phases: Sequence[PhaseResult], stress: Stress) -> list[str]:
    """Return a note if the peer was slower than its jobs came, even without the stress."""
    reached = phases[0].rate
    if reached >= FEWEST * stress.rate:
        return []
    note = (
        f"runs {reached:,.0f} of {stress.rate} jobs/s without the stress: calls or jobs wait in"
        " line, and pickups show how long"
    )
    return [note]
