"""Sweep: measure at every step of an axis, up and down in turns.

A slow moment of the machine then hits one step of one round. The line of the chart goes through the
medians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.case_record import CaseResult, Curve, Point
from bench.cases import CaseContext
from bench.progress import show_progress

Rates = dict[str, float]  # jobs per second, by the name of the series


def sweep(
    context: CaseContext,
    steps: Sequence[int],
    measure: Callable[[int], Rates],
    *,
    case: str,
    title: str,
    x_label: str,
    logarithmic: bool = True,
) -> CaseResult:
    series: dict[str, list[Point]] = {}
    for number in range(context.rounds):
        for step in steps if number % 2 == 0 else reversed(steps):
            for name, rate in measure(step).items():
                series.setdefault(name, []).append((step, round(rate)))
                show_progress(f"    {x_label} {step:,}: {rate:,.0f} jobs/s, {name}")
    curve = Curve(
        case=case,
        title=title,
        x_label=x_label,
        y_label="jobs/s",
        series=series,
        logarithmic=logarithmic,
    )
    return CaseResult([], [curve])
