"""Count: a number that is exact up to a cap; beyond it, only that there are more.

Counting millions of waiting jobs on every refresh would cost more than running some of them.
"""

from __future__ import annotations

import msgspec

CAP = 10_000


class Count(msgspec.Struct, frozen=True):
    """A number of jobs, and whether there are more."""

    jobs: int = 0
    more: bool = False

    def __str__(self) -> str:
        return f"{self.jobs:,}{'+' if self.more else ''}"

    def __bool__(self) -> bool:
        return self.jobs > 0

    def __add__(self, other: Count) -> Count:
        return Count(self.jobs + other.jobs, self.more or other.more)


def capped(jobs: int, cap: int = CAP) -> Count:
    """Make a Count of a number that was counted up to one above the cap."""
    return Count(min(jobs, cap), jobs > cap)
