"""Plot: a record as one picture, horizontal bars per work, written as plain SVG.

Rates are drawn on a scale of their own per work; the thin line over a bar is its spread. For
pickups the bar is the median and the line reaches to the 99th percentile.
"""

from __future__ import annotations

from xml.sax.saxutils import escape

from bench.figures import Figure, Figures, figures
from bench.record import Record, in_order
from bench.works import WORKS

WIDTH, LEFT, RIGHT = 760, 150, 110
BAR, GAP, HEAD = 16, 6, 34
OURS, THEIRS, INK = "#3b6ea5", "#b8c4cf", "#222222"


def plot(record: Record) -> str:
    """Draw every work that was measured."""
    found = figures(record.measurements)
    shapes: list[str] = []
    top = 10
    for name, title, unit in _panels():
        bars = [
            (peer, _bar(found, peer, name))
            for peer in in_order(record.peers)
            if (peer, name) in found
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
        ("pickup_p50", work.title, "ms, median to p99; less is better")
        if work.kind == "pickup"
        else (work.name, work.title, "jobs/s")
        for work in WORKS.values()
    ]


def _bar(found: Figures, peer: str, name: str) -> Figure:
    one = found[peer, name]
    if name != "pickup_p50":
        return one
    return Figure(one.median, one.median, found[peer, "pickup_p99"].median)


def _panel(
    record: Record, title: str, unit: str, bars: list[tuple[str, Figure]], top: int
) -> list[str]:
    longest = max(one.high for _, one in bars)
    scale = (WIDTH - LEFT - RIGHT) / longest
    shapes = [
        text(10, top + 18, f"<tspan font-weight='bold'>{escape(title)}</tspan> · {escape(unit)}")
    ]
    for place, (peer, one) in enumerate(bars):
        y = top + HEAD + place * (BAR + GAP)
        baseline = y + BAR - 4
        said = f"{one.median:,.0f}" if longest >= 100 else f"{one.median:.2f}"
        title = escape(record.peers[peer].title)
        color = OURS if peer == "howdah" else THEIRS
        low, middle, high = (LEFT + value * scale for value in (one.low, one.median, one.high))
        shapes += [
            text(LEFT - 8, baseline, title, anchor="end"),
            box(LEFT, y, max(1.0, middle - LEFT), BAR, color),
            box(low, y + BAR / 2, high - low, 1, INK),
            text(max(middle, high) + 8, baseline, said),
        ]
    return shapes


def text(x: float, y: float, words: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def box(x: float, y: float, width: float, height: float, color: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}"'
    return f'<rect {place} fill="{color}"/>'
