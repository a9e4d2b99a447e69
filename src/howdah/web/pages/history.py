"""History: the charts of the overview, of a type's page and of a limit's page.

It is not a page: those pages call `load` or `load_limit`, and templates/parts/charts.html or
limit_charts.html renders it.
`?range=hour|day|week` sets the range, `?view=table` shows a table.

An open page is rendered every second, but the charts change once a minute. In between, a live
update says that they are unchanged (`data-same`), and the browser keeps them: see static/morph.js.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request

from howdah.errors import BadInput
from howdah.observe import LimitOverTime, NamedLimit, OverTime, Range, TookTooLong
from howdah.web.cache import LIVE, cache_of
from howdah.web.charts import Chart, charts
from howdah.web.context import DashboardContext
from howdah.web.limit_charts import limit_charts

_O = TypeVar("_O", OverTime, LimitOverTime)

SENT = "howdah.history"  # scope key of a live page: the points that were sent last
VIEWS = ("charts", "table")
POINTS: dict[Range, str] = {Range.HOUR: "a minute", Range.DAY: "15 minutes", Range.WEEK: "2 hours"}


class History(msgspec.Struct, frozen=True, kw_only=True):
    """The values of the template."""

    path: str  # of the page
    range: Range
    view: str
    over_time: OverTime | LimitOverTime | None  # None: the query took too long
    charts: list[Chart]
    same: bool  # the browser has them already
    ranges: tuple[Range, ...] = tuple(Range)

    @property
    def point(self) -> str:
        """Return the length of a point."""
        return POINTS[self.range]


async def load(
    context: DashboardContext, request: Request, path: str, job_type: str | None = None
) -> History:
    """Query the charts of all types, or of one."""
    cache = cache_of(context)
    return await _load(
        request, path, lambda range: cache.over_time(request, range, job_type), charts
    )


async def load_limit(
    context: DashboardContext, request: Request, path: str, limit: NamedLimit
) -> History:
    """Query the charts of a named limit."""
    cache = cache_of(context)
    return await _load(
        request,
        path,
        lambda range: cache.limit_over_time(request, range, limit.name),
        lambda over_time: limit_charts(over_time, limit),
    )


async def _load(
    request: Request,
    path: str,
    read: Callable[[Range], Awaitable[_O]],
    draw: Callable[[_O], list[Chart]],
) -> History:
    range = Range(_chosen(request, "range", [str(range) for range in Range]))
    view = _chosen(request, "view", VIEWS)
    try:
        over_time = await read(range)
    except TookTooLong:
        over_time = None
    same = (
        LIVE in request.scope
        and over_time is not None
        and request.scope.get(SENT) == over_time.points
    )
    request.scope[SENT] = None if over_time is None else over_time.points
    rendered = draw(over_time) if over_time is not None and view == "charts" and not same else []
    return History(
        path=path, range=range, view=view, over_time=over_time, charts=rendered, same=same
    )


def _chosen(request: Request, name: str, known: list[str] | tuple[str, ...]) -> str:
    """Read a query parameter that has a few values; the first is the default."""
    value = request.query_params.get(name, known[0])
    if value not in known:
        raise BadInput(f"{name} is {value[:50]!r}: choose one of {', '.join(known)}")
    return value
