"""Over: measure at every step of an axis, up and down in turns.

A moment in which the machine is slow hits one step of one round; the line goes through medians.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.cases import Stage, tell
from bench.findings import Curve, Point, Seen

Rates = dict[str, float]  # jobs per second, by the name of the line


def over(
    stage: Stage,
    steps: Sequence[int],
    measure: Callable[[int], Rates],
    *,
    case: str,
    title: str,
    across: str,
    logarithmic: bool = True,
) -> Seen:
    lines: dict[str, list[Point]] = {}
    for number in range(stage.rounds):
        for step in steps if number % 2 == 0 else reversed(steps):
            for name, rate in measure(step).items():
                lines.setdefault(name, []).append((step, round(rate)))
                tell(f"    {across} {step:,}: {rate:,.0f} jobs/s, {name}")
    curve = Curve(
        case=case,
        title=title,
        across=across,
        upward="jobs/s",
        lines=lines,
        logarithmic=logarithmic,
    )
    return Seen([], [curve])
