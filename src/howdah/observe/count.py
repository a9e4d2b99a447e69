"""Count: how many, exactly up to a cap; beyond it only that there are more.

Counting millions of waiting jobs on every refresh would cost more than running some of them, and
nobody acts differently on 3,000,000 than on "10,000+".
"""

from __future__ import annotations

import msgspec

CAP = 10_000


class Count(msgspec.Struct, frozen=True):
    """A number, and whether there are more than it says."""

    jobs: int = 0
    more: bool = False

    def __str__(self) -> str:
        return f"{self.jobs:,}{'+' if self.more else ''}"

    def __bool__(self) -> bool:
        return self.jobs > 0

    def __add__(self, other: Count) -> Count:
        return Count(self.jobs + other.jobs, self.more or other.more)


def capped(jobs: int, cap: int = CAP) -> Count:
    """Make a count of what was counted up to one above the cap."""
    return Count(min(jobs, cap), jobs > cap)
