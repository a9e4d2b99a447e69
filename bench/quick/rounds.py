"""Rounds: measure both variants with the same workloads again and again, in turns.

Comes after   variants.py
Comes before  verdict.py, which reads the pairs

A round of a workload is four measurements, A B B A, and gives two pairs. The next round begins with
the other variant. So neither a machine that becomes slower nor the order favours one of them. Each
variant first runs every workload with a few jobs: Python compiles, and a commit that lacks
something which the driver needs is found before time is spent on it. Workloads whose pairs do not
agree get more rounds while there is time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import psycopg

from bench.driver_process import DriverFailed
from bench.measure.prepared_peer import InvalidMeasurement
from bench.peer import Plan
from bench.quick.variants import Variant
from bench.quick.verdict import Comparison, Pair
from bench.server import Postgres

# Long enough for a useful measurement, short enough for many of them.
PLANS = {
    "enqueue_bulk": Plan(50_000),
    "enqueue_single": Plan(1_000),
    "drain_1": Plan(50_000),
    "pickup": Plan(60),
}
TRIAL_JOBS = 10
ROUNDS = 3  # of every workload
MOST_ROUNDS = 8  # of a workload in doubt
TIME = 150.0  # seconds after which no round begins


@dataclass(frozen=True, slots=True)
class PairRunner:
    """Measures the two variants on one server."""

    tree: Variant
    commit: Variant
    postgres: Postgres
    show_progress: Callable[[str], None]

    def measure_pair(self, workload: str, plan: Plan, tree_first: bool) -> Pair:
        results: dict[Variant, float] = {}
        for variant in (self.tree, self.commit) if tree_first else (self.commit, self.tree):
            results[variant] = self.measure(variant, workload, plan)
        return Pair(results[self.tree], results[self.commit])

    def measure(self, variant: Variant, workload: str, plan: Plan) -> float:
        try:
            return variant.measure(workload, plan, self.postgres)
        except (DriverFailed, InvalidMeasurement, psycopg.Error) as problem:
            raise MeasurementFailed(f"{variant.title} fails: {problem}") from problem


class MeasurementFailed(Exception):
    """A variant lacks something that the driver needs, or loses jobs."""


def compare(runner: PairRunner, plans: dict[str, Plan], seconds: float = TIME) -> list[Comparison]:
    """Compare both variants with these workloads."""
    deadline = time.monotonic() + seconds
    comparisons = {workload: Comparison(workload) for workload in plans}
    for workload, plan in plans.items():
        _attempt(comparisons[workload], lambda: _trial(runner, workload, plan))  # noqa: B023 - called at once
    for number in range(MOST_ROUNDS):
        for workload, plan in plans.items():
            comparison = comparisons[workload]
            wanted = comparison.in_doubt if number >= ROUNDS else comparison.problem is None
            if wanted and (time.monotonic() < deadline or not comparison.pairs):
                _attempt(comparison, lambda: _round(runner, comparison, plan, number))  # noqa: B023
    return list(comparisons.values())


def _attempt(comparison: Comparison, step: Callable[[], None]) -> None:
    try:
        step()
    except MeasurementFailed as problem:
        comparison.problem = str(problem)


def _trial(runner: PairRunner, workload: str, plan: Plan) -> None:
    for variant in (runner.tree, runner.commit):
        runner.measure(variant, workload, replace(plan, jobs=TRIAL_JOBS))


def _round(runner: PairRunner, comparison: Comparison, plan: Plan, number: int) -> None:
    tree_begins = number % 2 == 0
    for tree_first in (tree_begins, not tree_begins):
        comparison.pairs.append(runner.measure_pair(comparison.workload, plan, tree_first))
    runner.show_progress(comparison.line)
