"""Judge: from pairs of measurements to a verdict.

Comes after  rounds.py, which takes the pairs

The two measurements of a pair follow each other within seconds, so a machine that is slow for a
while is slow for both and their ratio stays. A single pair may still be hit; the median of several
is not. A ratio is always "how well the working tree does": 1 is as well, 0.85 is 15 % worse,
whether more is better (jobs per second) or less (milliseconds).
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from bench.works import WORKS

LARGEST_LOSS = 0.15
IN_DOUBT = 0.95  # a median below this is looked at more closely while there is time


@dataclass(frozen=True, slots=True)
class Pair:
    """What the two sides gave, one after the other."""

    tree: float
    commit: float


@dataclass(slots=True)
class Compared:
    """All that was found out about one work."""

    work: str
    pairs: list[Pair] = field(default_factory=list[Pair])
    problem: str | None = None  # why it could not be compared, or not to the end

    @property
    def title(self) -> str:
        return WORKS[self.work].title

    @property
    def is_time(self) -> bool:
        return WORKS[self.work].kind == "pickup"

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
        """Whether more pairs could still change the verdict: the pairs do not agree on it."""
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
        tree, commit = (
            statistics.median(found)
            for found in (
                [pair.tree for pair in self.pairs],
                [pair.commit for pair in self.pairs],
            )
        )
        low, high = min(self.ratios), max(self.ratios)
        return (
            f"{self.title:20} {self._shown(tree):>16} {self._shown(commit):>16}"
            f"   {self.ratio:.2f} ({low:.2f}-{high:.2f}, {len(self.pairs)} pairs)"
            f"{'   LOST' if self.lost else ''}"
        )

    def _shown(self, number: float) -> str:
        return f"{number:.2f} ms" if self.is_time else f"{number:,.0f} jobs/s"


PASSED, FAILED, INCOMPLETE = 0, 1, 2


def verdict(found: list[Compared]) -> tuple[int, str]:
    """Return the exit code, and the sentence that goes with it."""
    if lost := [each for each in found if each.lost]:
        said = ", ".join(f"{each.title} by {1 - each.ratio:.0%}" for each in lost)
        return FAILED, f"Slower by more than {LARGEST_LOSS:.0%}: {said}."
    if missing := [each for each in found if each.problem is not None]:
        return INCOMPLETE, f"Not compared: {', '.join(each.title for each in missing)}."
    return PASSED, f"Nothing is slower by more than {LARGEST_LOSS:.0%}."
