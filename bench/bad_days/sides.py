"""Sides: two databases, one having a good day and one a bad day, drained in turns.

The two are made once and differ in one thing only. They take turns, each first in every other
round, so a moment in which the machine is slow hits neither alone. The ratio is of the medians.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from bench.cases import Stage
from bench.findings import Curve, Finding, Point, Seen
from bench.yard import Drained, Yard

GOOD, BAD = "good day", "bad day"
DRAINED = 200_000

Do = Callable[[Yard], object]
Measure = Callable[[Yard], Drained]


def in_turns(
    stage: Stage,
    name: str,
    title: str,
    bound: float,
    *,
    good: Measure,
    bad: Measure,
    make_bad: Do | None = None,
) -> Seen:
    """Drain both in turns; the finding is how much of the good day's rate is left."""
    drained: dict[str, list[Drained]] = {GOOD: [], BAD: []}
    with stage.yard() as good_yard, stage.yard() as bad_yard:
        if make_bad is not None:
            make_bad(bad_yard)
        for yard in (good_yard, bad_yard):
            yard.settle_down()
        for _, is_bad in stage.turns():
            side = BAD if is_bad else GOOD
            drained[side].append(bad(bad_yard) if is_bad else good(good_yard))
    return Seen([rate_left(name, title, drained, bound)], [curve(name, title, drained)])


def rate_left(name: str, title: str, drained: dict[str, list[Drained]], bound: float) -> Finding:
    rates = {side: statistics.median(one.rate for one in found) for side, found in drained.items()}
    return Finding(
        case=name,
        title=f"{title}, jobs/s ({rates[GOOD]:,.0f} on the good day)",
        measured=round(rates[BAD] / rates[GOOD], 3),
        sense="at least",
        bound=bound,
    )


def curve(name: str, title: str, drained: dict[str, list[Drained]]) -> Curve:
    """Draw every round, second by second; a drain shorter than a moment is one point."""
    return Curve(
        case=name,
        title=title,
        across="seconds",
        upward="jobs/s",
        lines={
            f"{side} {number}": one.moments or _one_point(one)
            for side, found in drained.items()
            for number, one in enumerate(found, 1)
        },
    )


def _one_point(one: Drained) -> list[Point]:
    return [(round(one.seconds, 3), round(one.rate))]


def plain(stage: Stage) -> Measure:
    """Enqueue jobs that do nothing, and drain them: the work of a good day."""

    def measure(yard: Yard) -> Drained:
        jobs = stage.jobs(DRAINED)
        yard.enqueue(jobs)
        return yard.drain(jobs)

    return measure
