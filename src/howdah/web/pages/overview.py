"""Overview: every type at a glance, problems first.

What needs a person stands first. Below, types that are alike in that go by throughput, and only by
its order of magnitude: otherwise rows would change places every second.
"""

from __future__ import annotations

from math import floor, log10
from typing import Any

import msgspec
from starlette.requests import Request

from howdah import observe
from howdah.observe import Level, Overview, Problem, TookTooLong, TypeNow
from howdah.observe.count import Count
from howdah.observe.problems import found
from howdah.web.desk import Desk
from howdah.web.page import Page
from howdah.web.pages import history
from howdah.web.recent import recent


class Headline(msgspec.Struct, frozen=True):
    """The whole queue in a few figures."""

    per_second: float
    waiting: Count
    running: int
    failure_rate: float | None


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    seen = await recent(desk).overview(request)
    try:
        workers = await observe.crew(desk.store, within=desk.within)
    except TookTooLong:
        workers = []
    problems = found(seen, workers, await recent(desk).diagnosis(request))
    levels = worst_by_type(problems)
    return {
        "now": seen.at,
        "seen": seen,
        "headline": headline(seen),
        "problems": problems,
        "types": sorted(seen.types, key=lambda one: _urgency(one, levels)),
        "levels": levels,
        "history": await history.look(desk, request, "/"),
    }


def headline(seen: Overview) -> Headline:
    """Add up what every type has."""
    attempts = sum(one.run.jobs for one in seen.types)
    failed = sum((one.failure_rate or 0.0) * one.run.jobs for one in seen.types)
    return Headline(
        per_second=sum(one.per_second for one in seen.types),
        waiting=sum((one.waiting for one in seen.types), Count()),
        running=sum(one.claimed + one.running for one in seen.types),
        failure_rate=failed / attempts if attempts else None,
    )


def worst_by_type(problems: list[Problem]) -> dict[str, Level]:
    """Say how bad it is with each type that has a problem."""
    worst: dict[str, Level] = {}
    for problem in problems:
        if problem.job_type is not None:
            known = worst.get(problem.job_type, Level.FINE)
            worst[problem.job_type] = max(known, problem.level)
    return worst


def _urgency(one: TypeNow, levels: dict[str, Level]) -> tuple[int, int, str]:
    magnitude = floor(log10(one.per_second)) if one.per_second else -99
    return (-levels.get(one.job_type, Level.FINE), -magnitude, one.job_type)


pages: list[Page] = [Page("/", "overview.html", look)]
