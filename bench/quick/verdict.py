"""Verdict: decide from pairs of measurements whether the working tree is slower.

Comes after  rounds.py, which measures the pairs

The two measurements of a pair follow each other within seconds, so a slow moment of the machine
mostly hits both, and their ratio stays. The median of several pairs ignores the others. A ratio
says how well the working tree does: 1 is equal, 0.85 is 15 % worse, for rates and for times.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from bench.workloads import WORKLOADS

LARGEST_LOSS = 0.15
IN_DOUBT = 0.95  # a median below this gets more pairs while there is time


@dataclass(frozen=True, slots=True)
class Pair:
    """The results of the two variants, measured one after the other."""

    tree: float
    commit: float


@dataclass(slots=True)
class Comparison:
    """The pairs of one workload."""

    workload: str
    pairs: list[Pair] = field(default_factory=list[Pair])
    problem: str | None = None  # why it could not be compared, or not to the end

    @property
    def title(self) -> str:
        return WORKLOADS[self.workload].title

    @property
    def is_time(self) -> bool:
        return WORKLOADS[self.workload].kind == "pickup"

    @property
    def ratios(self) -> list[float]:
        if self.is_time:
            return [pair.commit / pair.tree for pair in self.pairs]
        return [pair.tree / pair.commit for pair in self.pairs]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def in_doubt(self) -> bool:
        """Whether more pairs could change the verdict, because the pairs do not agree."""
        if self.problem is not None or not self.pairs:
            return False
        worse = sum(ratio < 1 - LARGEST_LOSS for ratio in self.ratios)
        some_worse = self.ratio < IN_DOUBT or worse * 4 >= len(self.pairs)
        return some_worse and worse < len(self.pairs)

    @property
    def lost(self) -> bool:
        return self.problem is None and self.ratio < 1 - LARGEST_LOSS

    @property
    def line(self) -> str:
        """One line of the report."""
        if self.problem is not None:
            return f"{self.title:20} not compared: {self.problem}"
        tree = statistics.median(pair.tree for pair in self.pairs)
        commit = statistics.median(pair.commit for pair in self.pairs)
        low, high = min(self.ratios), max(self.ratios)
        return (
            f"{self.title:20} {self._with_unit(tree):>16} {self._with_unit(commit):>16}"
            f"   {self.ratio:.2f} ({low:.2f}-{high:.2f}, {len(self.pairs)} pairs)"
            f"{'   LOST' if self.lost else ''}"
        )

    def _with_unit(self, number: float) -> str:
        return f"{number:.2f} ms" if self.is_time else f"{number:,.0f} jobs/s"


PASSED, FAILED, INCOMPLETE = 0, 1, 2


def verdict(comparisons: list[Comparison]) -> tuple[int, str]:
    """Return the exit code, and a sentence that explains it."""
    if lost := [comparison for comparison in comparisons if comparison.lost]:
        losses = ", ".join(f"{slower.title} by {1 - slower.ratio:.0%}" for slower in lost)
        return FAILED, f"Slower by more than {LARGEST_LOSS:.0%}: {losses}."
    if missing := [comparison for comparison in comparisons if comparison.problem is not None]:
        titles = ", ".join(comparison.title for comparison in missing)
        return INCOMPLETE, f"Not compared: {titles}."
    return PASSED, f"Nothing is slower by more than {LARGEST_LOSS:.0%}."
