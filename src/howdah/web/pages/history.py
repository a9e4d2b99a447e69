"""History: the charts that the overview and the page of a type share.

Not a page of its own: `look` is called by those pages, and templates/parts/charts.html draws it.
`?range=hour|day|week` says how far back, `?view=table` shows the same numbers as a table.

An open page is drawn every second and gets a new point once a minute. In between, a drawing says
that the charts are the same (`data-same`), and the browser keeps its own: see static/morph.js.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from howdah.errors import BadInput
from howdah.observe import OverTime, Range, TookTooLong
from howdah.web.charts import Chart, charts
from howdah.web.desk import Desk
from howdah.web.recent import LIVE, recent

SENT = "howdah.history"  # in the scope of an open page: the points that it was sent last
VIEWS = ("charts", "table")
POINTS: dict[Range, str] = {Range.HOUR: "a minute", Range.DAY: "15 minutes", Range.WEEK: "2 hours"}


class History(msgspec.Struct, frozen=True, kw_only=True):
    """What the template shows."""

    path: str  # of the page, where the links lead
    range: Range
    view: str
    seen: OverTime | None  # None: it took too long
    charts: list[Chart]
    same: bool  # an open page has them already
    ranges: tuple[Range, ...] = tuple(Range)

    @property
    def point(self) -> str:
        """Say how long a point is."""
        return POINTS[self.range]


async def look(desk: Desk, request: Request, path: str, job_type: str | None = None) -> History:
    """Look up what the charts of all types, or of one, show."""
    range = Range(_chosen(request, "range", [str(one) for one in Range]))
    view = _chosen(request, "view", VIEWS)
    try:
        seen = await recent(desk).over_time(request, range, job_type)
    except TookTooLong:
        seen = None
    same = LIVE in request.scope and seen is not None and request.scope.get(SENT) == seen.points
    request.scope[SENT] = None if seen is None else seen.points
    drawn = charts(seen) if seen is not None and view == "charts" and not same else []
    return History(path=path, range=range, view=view, seen=seen, charts=drawn, same=same)


def _chosen(request: Request, name: str, known: list[str] | tuple[str, ...]) -> str:
    """Read one of some words from the query; the first is the default."""
    said = request.query_params.get(name, known[0])
    if said not in known:
        raise BadInput(f"{name} is one of {', '.join(known)}, not {said[:50]!r}")
    return said
