"""Pair: a baseline database and an adverse one, drained in turns.

Both are created once and differ in one thing only. They take turns, and each is first in every
other round, so a slow moment of the machine does not hit one side alone. The result is the ratio
of the medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.case_record import CaseResult, Curve, Finding
from bench.cases import CaseContext
from bench.testbed import DrainResult, Testbed

BASELINE, ADVERSE = "baseline", "adverse"
DRAINED = 200_000

Prepare = Callable[[Testbed], object]
Measure = Callable[[Testbed], DrainResult]
Drains = dict[str, list[DrainResult]]  # by side


def compare_drains(
    context: CaseContext,
    name: str,
    title: str,
    bound: float,
    *,
    baseline: Measure,
    adverse: Measure,
    make_adverse: Prepare | None = None,
) -> CaseResult:
    """Drain both in turns. The finding is the part of the baseline's rate that is left."""
    drains: Drains = {BASELINE: [], ADVERSE: []}
    with context.testbed() as baseline_testbed, context.testbed() as adverse_testbed:
        if make_adverse is not None:
            make_adverse(adverse_testbed)
        for testbed in (baseline_testbed, adverse_testbed):
            testbed.vacuum_and_checkpoint()
        for _, is_adverse in context.turns():
            if is_adverse:
                drains[ADVERSE].append(adverse(adverse_testbed))
            else:
                drains[BASELINE].append(baseline(baseline_testbed))
    return CaseResult([rate_left(name, title, drains, bound)], [curve(name, title, drains)])


def rate_left(name: str, title: str, drains: Drains, bound: float) -> Finding:
    rates = {
        side: statistics.median(drain.rate for drain in repeated)
        for side, repeated in drains.items()
    }
    return Finding(
        case=name,
        title=f"{title}, jobs/s (baseline {rates[BASELINE]:,.0f})",
        measured=round(rates[ADVERSE] / rates[BASELINE], 3),
        sense="at least",
        bound=bound,
    )


def curve(name: str, title: str, drains: Drains) -> Curve:
    """Draw the rate of every round over time. A very short drain is one point."""
    return Curve(
        case=name,
        title=title,
        x_label="seconds",
        y_label="jobs/s",
        series={
            f"{side} {number}": drain.rates or [(round(drain.seconds, 3), round(drain.rate))]
            for side, repeated in drains.items()
            for number, drain in enumerate(repeated, 1)
        },
    )


def drain_noops(context: CaseContext) -> Measure:
    """Enqueue jobs that do nothing, and drain them: the work of the baseline."""

    def measure(testbed: Testbed) -> DrainResult:
        jobs = context.jobs(DRAINED)
        testbed.enqueue(jobs)
        return testbed.drain(jobs)

    return measure
