"""Line chart: draw curves as SVG, one panel each.

The white background is part of the image, so it can be read on a dark page too. Where a point was
measured several times, the line goes through the medians, and every measurement is a dot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.sax.saxutils import escape

from bench.bar_chart import INK, WIDTH, text
from bench.case_record import Curve, Point, medians

LEFT, RIGHT, HEAD, TALL, FOOT = 70, 20, 52, 180, 46
GRID = "#e3e7eb"
COLORS = ("#3b6ea5", "#d1662b", "#4f9d69", "#8b5fa8", "#7f7f7f", "#b8a13a")
MANY = 40  # points; a line with more has no dots


def line_chart(curves: Sequence[Curve]) -> str:
    """Draw the curves below one another."""
    panel = HEAD + TALL + FOOT
    height = max(1, len(curves)) * panel
    shapes = [shape for nth, curve in enumerate(curves) for shape in _panel(curve, nth * panel)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{INK}">\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )


class Scale:
    """Converts values of a curve to positions in its panel."""

    def __init__(self, curve: Curve, top: float) -> None:
        points = [point for line in curve.series.values() for point in line] or [(0.0, 0.0)]
        self._log = curve.logarithmic
        self._first = min(self._on_axis(x) for x, _ in points)
        self._width = (max(self._on_axis(x) for x, _ in points) - self._first) or 1.0
        self.highest = _round_up(max(y for _, y in points))
        self._bottom = top + HEAD + TALL

    def x(self, value: float) -> float:
        part = (self._on_axis(value) - self._first) / self._width
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return self._bottom - value / self.highest * TALL

    def _on_axis(self, value: float) -> float:
        """Return the logarithm on a logarithmic axis, where 0 has the place of 1."""
        return math.log10(max(value, 1.0)) if self._log else value


def _round_up(value: float) -> float:
    """Return the next number that reads well at the top of an axis."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value)


def _panel(curve: Curve, top: float) -> list[str]:
    scale = Scale(curve, top)
    title = f"<tspan font-weight='bold'>{escape(curve.title)}</tspan> · {escape(curve.y_label)}"
    shapes = [text(10, top + 18, title), *_legend(curve, top + 38)]
    for part in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = scale.y(scale.highest * part)
        shapes += [
            _path([(LEFT, y), (WIDTH - RIGHT, y)], GRID, 1),
            text(LEFT - 8, y + 4, axis_label(scale.highest * part), anchor="end"),
        ]
    for x in _ticks(curve):
        shapes.append(text(scale.x(x), scale.y(0) + 18, axis_label(x), anchor="middle"))
    shapes.append(text(WIDTH - RIGHT, scale.y(0) + 36, escape(curve.x_label), anchor="end"))
    for color, points in zip(_colors(curve), curve.series.values(), strict=True):
        shapes += _line(scale, points, color)
    return shapes


def _line(scale: Scale, points: list[Point], color: str) -> list[str]:
    middle = [(scale.x(x), scale.y(y)) for x, y in medians(points).items()]
    dots = points if len(points) <= MANY else []
    return [
        _path(middle, color, 2),
        *(
            f'<circle cx="{scale.x(x):.1f}" cy="{scale.y(y):.1f}" r="2.5" fill="{color}"/>'
            for x, y in dots
        ),
    ]


def _colors(curve: Curve) -> list[str]:
    return [COLORS[nth % len(COLORS)] for nth in range(len(curve.series))]


def _legend(curve: Curve, y: float) -> list[str]:
    shapes: list[str] = []
    x = float(LEFT)
    for color, name in zip(_colors(curve), curve.series, strict=True):
        shapes += [_path([(x, y - 4), (x + 16, y - 4)], color, 3), text(x + 22, y, escape(name))]
        x += 46 + 6.5 * len(name)
    return shapes


def _ticks(curve: Curve) -> list[float]:
    xs = sorted({x for line in curve.series.values() for x, _ in line})
    if len(xs) <= 10:
        return xs
    step = _round_up((xs[-1] - xs[0]) / 8)
    return [step * nth for nth in range(math.ceil(xs[0] / step), math.floor(xs[-1] / step) + 1)]


def axis_label(value: float) -> str:
    """Write a number short enough for an axis."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return (
                f"{value / size:g}{letter}" if value % size == 0 else f"{value / size:.1f}{letter}"
            )
    return f"{value:g}" if value >= 10 or value == int(value) else f"{value:.2g}"


def _path(points: Sequence[Point], color: str, width: float) -> str:
    steps = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{steps}" fill="none" stroke="{color}" stroke-width="{width}"/>'
