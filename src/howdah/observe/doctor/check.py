"""Check: one finding of the doctor, and all of them together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from enum import IntEnum

import msgspec

from howdah.errors import NotAllowed
from howdah.store import Store, query


class Level(IntEnum):
    """How bad it is. Unknown is worse than fine and better than a warning."""

    FINE = 0
    UNKNOWN = 1
    WARNING = 2
    CRITICAL = 3

    @property
    def word(self) -> str:
        return self.name.lower()


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One finding."""

    name: str  # for programs
    level: Level
    sentence: str  # what was found
    advice: str = ""  # what it means and what to do; empty if it is fine
    value: float | None = None  # what was compared with the limits, for programs
    unit: str = ""


class Diagnosis(msgspec.Struct, frozen=True):
    """Every check, worst first."""

    checks: list[Check]

    @property
    def level(self) -> Level:
        return max((check.level for check in self.checks), default=Level.UNKNOWN)


Examination = Callable[[Store, timedelta], Awaitable[list[Check]]]


def graded(value: float, warning: float, critical: float) -> Level:
    """Compare with two limits."""
    return (
        Level.CRITICAL if value >= critical else Level.WARNING if value >= warning else Level.FINE
    )


async def examine(store: Store, *, within: timedelta = query.WITHIN) -> Diagnosis:
    """Do every check, each with its own time limit."""
    from howdah.observe.doctor import database, limits, release, schedules, tables, workers

    checks: list[Check] = []
    for name, examination in {
        **database.EXAMINATIONS,
        **release.EXAMINATIONS,
        **tables.EXAMINATIONS,
        **workers.EXAMINATIONS,
        **limits.EXAMINATIONS,
        **schedules.EXAMINATIONS,
    }.items():
        try:
            checks += await examination(store, within)
        except (query.TookTooLong, NotAllowed) as error:
            checks.append(
                Check(
                    name=name,
                    level=Level.UNKNOWN,
                    sentence=f"This could not be checked: {error}",
                    advice="Grant pg_monitor to the role, or give the check more time.",
                )
            )
    return Diagnosis(sorted(checks, key=lambda check: -check.level))
