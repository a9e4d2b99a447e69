"""Bar chart: draw a record as SVG, with horizontal bars for each workload.

Each workload has its own scale. The thin line over a bar is the spread. For pickups the bar is the
median, and the line reaches to the 99th percentile.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from bench.aggregate import Aggregate, Aggregates, aggregate
from bench.record import Record, in_order
from bench.workloads import WORKLOADS

WIDTH, LEFT, RIGHT = 760, 150, 110
BAR, GAP, HEAD = 16, 6, 34
OURS, THEIRS, INK = "#3b6ea5", "#b8c4cf", "#222222"


def bar_chart(record: Record) -> str:
    """Draw every workload that was measured."""
    aggregates = aggregate(record.measurements)
    shapes: list[str] = []
    top = 10
    for name, title, unit in _panels():
        bars = [
            (peer, _bar(aggregates, peer, name))
            for peer in in_order(record.peers)
            if (peer, name) in aggregates
        ]
        if bars:
            shapes += _panel(record, title, unit, bars, top)
            top += HEAD + len(bars) * (BAR + GAP) + GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{top}" '
        f'viewBox="0 0 {WIDTH} {top}" font-family="sans-serif" font-size="12" fill="{INK}">\n'
        f'<rect width="{WIDTH}" height="{top}" fill="#ffffff"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


def _panels() -> list[tuple[str, str, str]]:
    return [
        ("pickup_p50", workload.title, "ms, median to p99; less is better")
        if workload.kind == "pickup"
        else (workload.name, workload.title, "jobs/s")
        for workload in WORKLOADS.values()
    ]


def _bar(aggregates: Aggregates, peer: str, name: str) -> Aggregate:
    bar = aggregates[peer, name]
    if name != "pickup_p50":
        return bar
    return Aggregate(bar.median, bar.median, aggregates[peer, "pickup_p99"].median)


def _panel(
    record: Record, title: str, unit: str, bars: list[tuple[str, Aggregate]], top: int
) -> list[str]:
    longest = max(bar.high for _, bar in bars)
    scale = (WIDTH - LEFT - RIGHT) / longest
    shapes = [
        text(10, top + 18, f"<tspan font-weight='bold'>{escape(title)}</tspan> · {escape(unit)}")
    ]
    for row, (peer, bar) in enumerate(bars):
        y = top + HEAD + row * (BAR + GAP)
        baseline = y + BAR - 4
        label = f"{bar.median:,.0f}" if longest >= 100 else f"{bar.median:.2f}"
        title = escape(record.peers[peer].title)
        color = OURS if peer == "howdah" else THEIRS
        low, middle, high = (LEFT + value * scale for value in (bar.low, bar.median, bar.high))
        shapes += [
            text(LEFT - 8, baseline, title, anchor="end"),
            box(LEFT, y, max(1.0, middle - LEFT), BAR, color),
            box(low, y + BAR / 2, high - low, 1, INK),
            text(max(middle, high) + 8, baseline, label),
        ]
    return shapes


def text(x: float, y: float, content: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{content}</text>'


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    position = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}"'
    return f'<rect {position} fill="{color}"/>'
