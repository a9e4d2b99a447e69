"""Limit charts: the use of a named limit over time, drawn by charts.py."""

from __future__ import annotations

from howdah.observe import LimitOverTime, NamedLimit
from howdah.web.charts import Chart, ChartSpec, Series, compact, draw, per_unit

FAR = 4  # the line of the allowed number is drawn if it is at most so many times the most
_NEVER = "nothing was counted yet"


def limit_charts(seen: LimitOverTime, limit: NamedLimit) -> list[Chart]:
    """Draw the jobs that held a slot, those that waited, and the attempts that ended."""
    uncounted = [point.admitted is None for point in seen.points]
    more = [point.admitted is not None and point.admitted.more for point in seen.points]
    peaks: list[float | None] = [
        None if point.admitted is None else point.admitted.jobs for point in seen.points
    ]
    most = max((peak for peak in peaks if peak is not None), default=0)
    one_for_all = limit.at_once is not None and not limit.per_key
    near = limit.at_once is not None and limit.at_once <= FAR * most
    attempts, unit = per_unit([point.per_minute for point in seen.points])
    specs = [
        ChartSpec(
            id="admitted",
            title="Admitted",
            unit=f"jobs; {limit.at_once:,} allowed" if one_for_all else "jobs that hold a slot",
            series=[
                Series("p99", peaks, "peak"),
                Series("one", [point.mean for point in seen.points], "mean"),
            ],
            format=compact,
            whole=True,
            gaps=uncounted,
            gap="not counted",
            more=more,
            nothing=_NEVER,
            line=limit.at_once if one_for_all and near else None,
        ),
        ChartSpec(
            id="waiting",
            title="Waiting",
            unit="jobs, the most at once",
            series=[
                Series("one", [None if p.waiting is None else p.waiting.jobs for p in seen.points])
            ],
            format=compact,
            whole=True,
            gaps=uncounted,
            gap="not counted",
            more=more,
            nothing=_NEVER,
        ),
        ChartSpec(
            id="attempts",
            title="Attempts",
            unit=f"ended per {unit}",
            series=[Series("one", attempts)],
            format=compact,
            gaps=[point.attempts is None for point in seen.points],
        ),
    ]
    return [draw(spec, seen) for spec in specs]
