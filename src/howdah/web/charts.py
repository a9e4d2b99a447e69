"""Charts: a queue over time as inline SVG, without a script. limit_charts.py draws named limits.

Lines differ in colour, dashes and the label at their end. Where no worker was running, a line has a
gap and the background is shaded. Durations have a logarithmic scale, because p50 and p99 often
differ a hundredfold. The paths are short, because live updates send them again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec
from markupsafe import Markup, escape

from howdah.observe import OverTime, Point, Range
from howdah.text.wording import length

Value = float | None
_Parts = list[list[tuple[int, float]]]  # of a line: (point number, value)

WIDTH, HEIGHT = 400, 150
LEFT, RIGHT, TOP, BOTTOM = 46, 322, 12, 124  # of the plot
APART = 14  # between two labels at the ends of lines
BRIDGED: dict[Range, int] = {Range.HOUR: 2}  # steps between two points that a line joins; else 1
LATE = 4  # newest points that may be unknown because they are not added up yet
SHORTEST = 1e-5  # seconds, the smallest value of a duration scale
TICKS_OF_TIME: dict[float, str] = {
    1e-5: "0.01 ms",
    1e-4: "0.1 ms",
    1e-3: "1 ms",
    0.01: "10 ms",
    0.1: "100 ms",
    1.0: "1 s",
    10.0: "10 s",
    60.0: "1m",
    600.0: "10m",
    3600.0: "1h",
    36000.0: "10h",
    360000.0: "100h",
}
UNITS = ((1 / 60, "second", 120.0), (1.0, "minute", 1.0), (60.0, "hour", 0.0))
AGO: dict[Range, tuple[str, ...]] = {
    Range.HOUR: ("60m ago", "45", "30", "15", "now"),
    Range.DAY: ("24h ago", "18", "12", "6", "now"),
    Range.WEEK: ("7d ago", "6", "5", "4", "3", "2", "1", "now"),
}


class Series(msgspec.Struct, frozen=True):
    """One line; None where the value is unknown."""

    css: str
    values: list[Value]
    name: str = ""  # label at its end, if there are several lines


class Scale(msgspec.Struct, frozen=True):
    """Maps a value to a height between 0 (bottom) and 1 (top)."""

    ticks: list[float]
    share: Callable[[float], float]


class Chart(msgspec.Struct, frozen=True, kw_only=True):
    """One chart with its texts."""

    id: str
    title: str
    unit: str
    most: str  # the largest value and its time
    svg: Markup


class SomePoint(Protocol):
    """A point of any history."""

    @property
    def at(self) -> datetime: ...


class SomeHistory(Protocol):
    """What a chart needs of a history."""

    @property
    def range(self) -> Range: ...
    @property
    def at(self) -> datetime: ...
    @property
    def step(self) -> timedelta: ...
    @property
    def points(self) -> Sequence[SomePoint]: ...


class ChartSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a chart."""

    id: str
    title: str
    unit: str
    series: list[Series]
    format: Callable[[float], str]
    durations: bool = False  # with a logarithmic scale
    whole: bool = False  # ticks are whole numbers
    gaps: list[bool]  # points at which nothing was measured or counted
    gap: str = "no worker was running"  # the reason
    more: list[bool] = []  # points with more than was counted
    nothing: str = "nothing was measured yet"  # shown without a value
    line: float | None = None  # drawn across


# ── the five charts ──


def charts(seen: OverTime) -> list[Chart]:
    """Draw throughput, failures, waiting jobs, pickup and run times."""
    return [draw(spec, seen) for spec in _specs(seen.points)]


def _specs(points: Sequence[Point]) -> list[ChartSpec]:
    done = [point.per_minute(point.completed) for point in points]
    lost = [[p.per_minute(p.failed) for p in points], [p.per_minute(p.retried) for p in points]]
    by_done, per_done = _unit(done)
    by_lost, per_lost = _unit([*lost[0], *lost[1]])
    unmeasured = [point.completed is None for point in points]
    return [
        ChartSpec(
            id="throughput",
            title="Throughput",
            unit=f"completed per {per_done}",
            series=[Series("one", _times(done, by_done))],
            format=compact,
            gaps=unmeasured,
        ),
        ChartSpec(
            id="failures",
            title="Failed attempts",
            unit=f"per {per_lost}",
            series=[
                Series("bad", _times(lost[0], by_lost), "failed"),
                Series("again", _times(lost[1], by_lost), "retried"),
            ],
            format=compact,
            gaps=unmeasured,
        ),
        ChartSpec(
            id="waiting",
            title="Waiting",
            unit="jobs in line",
            series=[Series("one", [None if p.waiting is None else p.waiting.jobs for p in points])],
            format=compact,
            whole=True,
            gaps=[point.waiting is None for point in points],
            gap="not counted",
            more=[point.waiting is not None and point.waiting.more for point in points],
        ),
        _latency("pickup", "Pickup", "from due to started", points),
        _latency("run", "Run", "how long attempts ran", points),
    ]


def _latency(id: str, title: str, unit: str, points: Sequence[Point]) -> ChartSpec:
    def of(name: str) -> list[Value]:
        known: list[timedelta | None] = [getattr(getattr(point, id), name) for point in points]
        return [None if time is None else max(time.total_seconds(), SHORTEST) for time in known]

    return ChartSpec(
        id=id,
        title=title,
        unit=unit,
        series=[Series("p50", of("p50"), "p50"), Series("p99", of("p99"), "p99")],
        format=_length,
        durations=True,
        gaps=[point.completed is None for point in points],
        nothing="no attempt ended"
        if any(point.minutes for point in points)
        else "nothing was measured yet",
    )


def _unit(per_minute: Sequence[Value]) -> tuple[float, str]:
    """Choose the unit of a rate, so that its numbers are neither tiny nor huge."""
    most = max((value for value in per_minute if value is not None), default=0.0)
    if not most:
        return 1.0, "minute"
    return next((factor, name) for factor, name, least in UNITS if most >= least)


def per_unit(per_minute: Sequence[Value]) -> tuple[list[Value], str]:
    """Return a rate in a unit that fits its numbers, and the unit."""
    factor, name = _unit(per_minute)
    return _times(per_minute, factor), name


def _times(values: Iterable[Value], factor: float) -> list[Value]:
    return [None if value is None else value * factor for value in values]


# ── text ──


def compact(value: float) -> str:
    """Format a number in a few characters: 0.02, 7, 4.2k, 1.2M."""
    for size, sign in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size * 0.9995:
            return f"{_three(value / size)}{sign}"
    return _three(value)


def _three(value: float) -> str:
    """Format a number below 1000 with two or three digits."""
    if value >= 99.95:
        return f"{value:.0f}"
    if value >= 9.95:
        return f"{value:.3g}"
    return f"{value:.2g}" if value >= 0.001 or not value else f"{value:.0e}"


def _length(seconds: float) -> str:
    if seconds in TICKS_OF_TIME:
        return TICKS_OF_TIME[seconds]
    return "0 ms" if seconds <= SHORTEST else length(timedelta(seconds=seconds))


def _ago(seen: SomeHistory, n: int) -> str:
    """Format how long ago a point was, to the minute."""
    minute = timedelta(minutes=1)
    past = seen.at - seen.points[n].at - seen.step / 2
    return f"{length(max(minute, round(past / minute) * minute))} ago"


# ── drawing ──


def draw(spec: ChartSpec, seen: SomeHistory) -> Chart:
    """Draw one chart."""
    known = [value for series in spec.series for value in series.values if value is not None]
    nothing = spec.nothing
    scale = None
    body = Markup('<text class="none" x="{}" y="{}">{}</text>').format(
        (LEFT + RIGHT) / 2, (TOP + BOTTOM) / 2, nothing
    )
    if known:
        scale = (
            log_scale(known)
            if spec.durations
            else linear_scale(max([*known, spec.line or 0.0]), spec.whole)
        )
        body = Markup("").join(_body(spec, scale, seen))
    most = _most(spec, seen)
    texts = [*_newest(spec), most] if known else [nothing]
    head = f"{spec.title}, {spec.unit}, last {seen.range}: {', '.join(texts)}"
    svg = Markup(
        '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}{}{}</svg>'
    ).format(WIDTH, HEIGHT, head, _gaps(spec, seen), _axes(spec, scale, seen.range), body)
    return Chart(id=spec.id, title=spec.title, unit=spec.unit, most=most, svg=svg)


def _newest(spec: ChartSpec) -> Iterable[str]:
    for series in spec.series:
        known = [n for n, value in enumerate(series.values) if value is not None]
        if known:
            yield f"{series.name or 'newest'} {_value_text(spec, series, known[-1])}"


def _most(spec: ChartSpec, seen: SomeHistory) -> str:
    """Format the largest value of all lines, the newest of equals."""
    values = [
        (value, n, number)
        for number, series in enumerate(spec.series)
        for n, value in enumerate(series.values)
        if value is not None
    ]
    if not values:
        return "\u2013"
    most, n, number = max(values)
    if not most:
        return "none"
    series = spec.series[number]
    name = f"{series.name} " if series.name else ""
    return f"most: {name}{_value_text(spec, series, n)}, {_ago(seen, n)}"


def _value_text(spec: ChartSpec, series: Series, n: int) -> str:
    """Format one value; a plus means that there were more than were counted."""
    value = series.values[n]
    assert value is not None
    return f"{spec.format(value)}{'+' if spec.more and spec.more[n] else ''}"


def _x(n: float, of: int) -> float:
    return LEFT + (n + 0.5) / of * (RIGHT - LEFT)


def _y(value: float, scale: Scale) -> float:
    return BOTTOM - min(max(scale.share(value), 0.0), 1.0) * (BOTTOM - TOP)


def linear_scale(most: float, whole: bool = False) -> Scale:
    """Scale from 0 to a round number above all values, in a few round steps."""
    if most <= 0:
        return Scale([0.0, 1.0], lambda value: value)
    size = 10.0 ** math.floor(math.log10(most))
    step = next(size * n for n in (0.2, 0.25, 0.5, 1.0, 2.0, 2.5, 5.0) if most / (size * n) <= 4)
    step = max(step, 1.0) if whole else step
    ticks = [step * n for n in range(math.ceil(most / step - 1e-9) + 1)]
    return Scale(ticks, lambda value: value / ticks[-1])


def log_scale(known: Sequence[float]) -> Scale:
    """Scale from a round duration below all values to one above, logarithmic."""
    low, high, every = min(known), max(known), list(TICKS_OF_TIME)
    first = max((n for n, tick in enumerate(every) if tick <= low), default=0)
    last = next((n for n, tick in enumerate(every) if tick >= high), len(every) - 1)
    first, last = (first, last) if first < last else (max(0, last - 1), max(1, last))
    ticks = every[first : last + 1]
    foot, whole = math.log(ticks[0]), math.log(ticks[-1] / ticks[0])
    shown = ticks if len(ticks) <= 6 else ticks[::2]
    return Scale(shown, lambda value: (math.log(max(value, SHORTEST)) - foot) / whole)


def _axes(spec: ChartSpec, scale: Scale | None, range: Range) -> Markup:
    parts: list[Markup] = []
    for tick in scale.ticks if scale else [0.0]:
        y = _y(tick, scale) if scale else BOTTOM
        parts.append(Markup('<path class="rule" d="M{} {:.1f}H{}"/>').format(LEFT, y, RIGHT))
        if scale:
            parts.append(
                Markup('<text class="y" x="{}" y="{:.1f}">{}</text>').format(
                    LEFT - 5, y + 4, spec.format(tick)
                )
            )
    ago = AGO[range]
    for n, text in enumerate(ago):
        x = LEFT + (RIGHT - LEFT) * n / (len(ago) - 1)
        parts.append(
            Markup('<text class="x{}" x="{:.0f}" y="{}">{}</text>').format(
                " first" if n == 0 else "", x, HEIGHT - 8, text
            )
        )
    return Markup("").join(parts)


def _gaps(spec: ChartSpec, seen: SomeHistory) -> Markup:
    """Shade the times in which nothing was measured or counted."""
    unknown = spec.gaps
    width = (RIGHT - LEFT) / len(unknown)
    parts: list[Markup] = []
    for first, past in _runs(unknown):
        if past - first < BRIDGED.get(seen.range, 1) or (
            past == len(unknown) and past - first <= LATE
        ):
            continue
        parts.append(
            Markup(
                '<path class="gap" d="M{:.1f} {}H{:.1f}V{}H{:.1f}z"><title>{}</title></path>'
            ).format(
                LEFT + first * width,
                TOP,
                LEFT + past * width,
                BOTTOM,
                LEFT + first * width,
                spec.gap,
            )
        )
    return Markup("").join(parts)


def _runs(flags: Sequence[bool]) -> Iterable[tuple[int, int]]:
    """Yield the start and the end of each run of True."""
    first: int | None = None
    for n, flag in enumerate([*flags, False]):
        if flag and first is None:
            first = n
        elif not flag and first is not None:
            yield first, n
            first = None


def _body(spec: ChartSpec, scale: Scale, seen: SomeHistory) -> Iterable[Markup]:
    if spec.line is not None:
        yield Markup('<path class="allowed" d="M{} {:.1f}H{}"/>').format(
            LEFT, _y(spec.line, scale), RIGHT
        )
    for series in spec.series:
        parts = _joined(series.values, BRIDGED.get(seen.range, 1))
        yield _line(series, parts, scale, area=len(spec.series) == 1)
    yield from _ends(spec, scale)
    yield Markup('<g class="hits">{}</g>').format(Markup("").join(_hits(spec, seen)))


def _line(series: Series, parts: _Parts, scale: Scale, area: bool) -> Markup:
    """Draw a line with its gaps; a single point becomes a dot."""
    of = len(series.values)
    paths, fills = "", ""
    for part in parts:
        dots = [f"{_x(n, of):.1f} {_y(value, scale):.1f}" for n, value in part]
        paths += f"M{'L'.join(dots)}" + ("h0" if len(dots) == 1 else "")
        if len(dots) > 1:
            first, last = _x(part[0][0], of), _x(part[-1][0], of)
            fills += f"M{first:.1f} {BOTTOM}L{'L'.join(dots)}L{last:.1f} {BOTTOM}z"
    fill = (
        Markup('<path class="area {}" d="{}"/>').format(series.css, fills) if area and fills else ""
    )
    return Markup('{}<path class="line {}" d="{}"/>').format(fill, series.css, paths)


def _joined(values: Sequence[Value], bridged: int) -> _Parts:
    """Split the known values of a line at its gaps."""
    parts: _Parts = []
    for n, value in enumerate(values):
        if value is None:
            continue
        if parts and n - parts[-1][-1][0] <= bridged:
            parts[-1].append((n, value))
        else:
            parts.append([(n, value)])
    return parts


def _ends(spec: ChartSpec, scale: Scale) -> Iterable[Markup]:
    """Mark the largest value of each line, and label its newest."""
    ends: list[tuple[float, float, Series, float]] = []
    for series in spec.series:
        known = [(n, value) for n, value in enumerate(series.values) if value is not None]
        if not known:
            continue
        n, most = max(known, key=lambda item: (item[1], item[0]))
        if most > min(value for _, value in known):
            yield Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="2.5"/>').format(
                series.css, _x(n, len(series.values)), _y(most, scale)
            )
        n, last = known[-1]
        ends.append((_y(last, scale), _x(n, len(series.values)), series, last))
    ends.sort(key=lambda end: end[0])
    for y, x, series, value in _spread(ends):
        text = f"{series.name} {spec.format(value)}".strip()
        yield Markup('<text class="end {}" x="{:.1f}" y="{:.1f}">{}</text>').format(
            series.css, x + 6, y + 4, text
        )


def _spread(
    ends: Sequence[tuple[float, float, Series, float]],
) -> list[tuple[float, float, Series, float]]:
    """Move labels apart that would overlap."""
    if len(ends) < 2 or ends[1][0] - ends[0][0] >= APART:
        return list(ends)
    middle = min(max((ends[0][0] + ends[1][0]) / 2, TOP + APART / 2), BOTTOM - APART / 2)
    x = max(ends[0][1], ends[1][1])
    return [(middle - APART / 2, x, *ends[0][2:]), (middle + APART / 2, x, *ends[1][2:])]


def _hits(spec: ChartSpec, seen: SomeHistory) -> Iterable[Markup]:
    """Add a tooltip to each point: its time and its values."""
    width = (RIGHT - LEFT) / len(seen.points)
    for n, point in enumerate(seen.points):
        text = ", ".join(
            f"{series.name} {spec.format(value)}".strip()
            for series in spec.series
            if (value := series.values[n]) is not None
        )
        if text:
            title = escape(f"{point.at.astimezone(UTC):%a %H:%M} UTC: {text}")
            x = LEFT + n * width
            # hundreds of points: Markup.format would take most of the time
            shape = f"M{x:.1f} {TOP}h{width:.1f}V{BOTTOM}H{x:.1f}z"
            yield Markup(f'<path d="{shape}"><title>{title}</title></path>')  # noqa: S704 - escaped
