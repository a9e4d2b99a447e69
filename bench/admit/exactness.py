"""Exactness: what the logs of the handlers show about a rule.

A log has when each job began and ended, on one clock for all processes. So it shows what ran at the
same time, whatever the peer says about it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.admit.handler import BEGAN, ENDED
from bench.admit.rules import Rule
from bench.pickup_log import read_times


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """One run of a handler. Times are in nanoseconds."""

    began: int
    ended: int
    number: int


def read_runs(folder: Path) -> list[Run]:
    """Return all runs that ended, in the order in which they began."""
    began, ended = _by_number(folder, BEGAN), _by_number(folder, ENDED)
    return sorted(
        Run(first, last, number - 1)
        for number, times in began.items()
        for first, last in zip(times, ended.get(number, ()), strict=False)
    )


def _by_number(folder: Path, suffix: str) -> dict[int, list[int]]:
    times: defaultdict[int, list[int]] = defaultdict(list)
    for number, time in read_times(folder, suffix):
        times[number].append(time)
    return {number: sorted(found) for number, found in times.items()}


def most_at_once(runs: Iterable[Run]) -> int:
    """Return how many of these jobs ran at the same time at most."""
    changes = sorted(change for run in runs for change in ((run.began, 1), (run.ended, -1)))
    most = running = 0
    for _, change in changes:
        running += change
        most = max(most, running)
    return most


def order_violations(runs: Sequence[Run]) -> int:
    """Count the jobs that began before one that was enqueued earlier."""
    violations = 0
    earliest: int | None = None  # of the jobs that began later
    for run in reversed(runs):
        if earliest is not None and earliest < run.number:
            violations += 1
        earliest = run.number if earliest is None else min(earliest, run.number)
    return violations


def by_key(runs: Iterable[Run], rule: Rule) -> list[list[Run]]:
    """Group the runs by what the rule limits: the key of the job, or nothing."""
    groups: defaultdict[int, list[Run]] = defaultdict(list)
    for run in runs:
        groups[run.number % rule.keys].append(run)
    return list(groups.values())


def findings(runs: Sequence[Run], rule: Rule) -> dict[str, float]:
    """Return what the report says about a rule."""
    groups = by_key(runs, rule)
    found: dict[str, float] = {"most_at_once": max(map(most_at_once, groups), default=0)}
    if rule.kind == "ordered":
        found["order_violations"] = sum(map(order_violations, groups))
    return found


def most_above(starts: Sequence[float], rate: float) -> float:
    """Return by how many the starts exceed the rate in the window where they exceed it most.

    The starts are in seconds and in order. A window from start i to start j has j - i + 1 starts,
    and the rate allows for rate * (tj - ti). So one pass that keeps the best beginning is enough.
    """
    most = best = float("-inf")
    for nth, at in enumerate(starts):
        best = max(best, rate * at - nth)
        most = max(most, nth + 1 - rate * at + best)
    return most


def most_within(starts: Sequence[float], seconds: float) -> int:
    """Return the most starts in any window of this length."""
    most = first = 0
    for nth, at in enumerate(starts):
        while at - starts[first] >= seconds:
            first += 1
        most = max(most, nth - first + 1)
    return most
