"""Schedules: those that should have fired, cannot fire, or are orphaned."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from howdah.observe.doctor.check import Check, Examination, Level
from howdah.observe.schedules import schedules
from howdah.store import Store
from howdah.text.wording import some


async def _schedules(store: Store, within: timedelta) -> list[Check]:
    found = await schedules(store, within=within)
    late = [each.name for each in found if each.state == "active" and each.late]
    stopped = [each for each in found if each.state == "stopped"]
    orphaned = [each.name for each in found if each.state == "orphaned"]
    if late:
        return [
            _warning(
                f"{_schedules_named(late)} should have fired more than a minute ago",
                "Workers fire schedules, of whatever types. Start one; if one runs, read its log.",
                len(late),
            )
        ]
    if stopped:
        return [
            _warning(
                f"{_schedules_named([each.name for each in stopped])} cannot fire: "
                f"{stopped[0].problem}",
                "Correct it with `howdah schedules set`, or remove it.",
                len(stopped),
            )
        ]
    if orphaned:
        return [
            _warning(
                f"{_schedules_named(orphaned)} is not in the code any more, and does not fire",
                "Remove it with `howdah schedules remove`, or set it again to keep it.",
                len(orphaned),
            )
        ]
    return [
        Check(
            name="schedules",
            level=Level.FINE,
            sentence="No schedule is late, stopped or orphaned.",
            value=0,
            unit="schedules",
        )
    ]


def _schedules_named(names: Sequence[str]) -> str:
    return f"The schedule {some(names)}"


def _warning(sentence: str, advice: str, count: int) -> Check:
    return Check(
        name="schedules",
        level=Level.WARNING,
        sentence=f"{sentence}.",
        advice=advice,
        value=count,
        unit="schedules",
    )


EXAMINATIONS: dict[str, Examination] = {"schedules": _schedules}
