"""Overview: all types, problems first.

Types are sorted by problem, then by the order of magnitude of their throughput. With an exact order
rows would change places every second.
"""

from __future__ import annotations

from math import floor, log10
from typing import Any

import msgspec
from starlette.requests import Request

from howdah import observe
from howdah.observe import Level, Overview, Problem, TookTooLong, TypeNow
from howdah.observe.count import Count
from howdah.observe.problems import problems_in
from howdah.web.cache import cache_of
from howdah.web.context import DashboardContext
from howdah.web.page import PageRoute
from howdah.web.pages import history


class Headline(msgspec.Struct, frozen=True):
    """The whole queue in a few figures."""

    per_second: float
    waiting: Count
    running: int
    failure_rate: float | None


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    overview = await cache_of(context).overview(request)
    try:
        workers = await observe.workers(context.store, within=context.within)
    except TookTooLong:
        workers = []
    problems = problems_in(overview, workers, await cache_of(context).diagnosis(request))
    levels = worst_by_type(problems)
    return {
        "now": overview.at,
        "overview": overview,
        "headline": headline(overview),
        "problems": problems,
        "types": sorted(overview.types, key=lambda type: _urgency(type, levels)),
        "levels": levels,
        "history": await history.load(context, request, "/"),
    }


def headline(overview: Overview) -> Headline:
    """Add up all types."""
    attempts = sum(type.run.jobs for type in overview.types)
    failed = sum((type.failure_rate or 0.0) * type.run.jobs for type in overview.types)
    return Headline(
        per_second=sum(type.per_second for type in overview.types),
        waiting=sum((type.waiting for type in overview.types), Count()),
        running=sum(type.claimed + type.running for type in overview.types),
        failure_rate=failed / attempts if attempts else None,
    )


def worst_by_type(problems: list[Problem]) -> dict[str, Level]:
    """Return the worst level of each type that has a problem."""
    worst: dict[str, Level] = {}
    for problem in problems:
        if problem.job_type is not None:
            known = worst.get(problem.job_type, Level.FINE)
            worst[problem.job_type] = max(known, problem.level)
    return worst


def _urgency(type: TypeNow, levels: dict[str, Level]) -> tuple[int, int, str]:
    magnitude = floor(log10(type.per_second)) if type.per_second else -99
    return (-levels.get(type.job_type, Level.FINE), -magnitude, type.job_type)


pages: list[PageRoute] = [PageRoute("/", "overview.html", load)]
