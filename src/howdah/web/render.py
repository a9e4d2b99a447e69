"""Render: templates as responses, and the filters that templates use.

A filter formats a value: `{{ at | ago(now) }}`. It returns text, which the template escapes, or
markup that was escaped here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from howdah.job import Priority
from howdah.observe.count import Count
from howdah.observe.overview import Lane, Minute
from howdah.observe.short_id import shortened
from howdah.text import wording
from howdah.text.printable import one_line
from howdah.version import VERSION
from howdah.web.paths import inner_path, url_to
from howdah.web.visitor import visitor_in

NOTHING = "\u2013"  # a missing value
DEFAULT_PRIORITY = int(Priority.DISCOVERED)


def number(value: float | Count | None) -> str:
    """Format a number or a count: 1,234 or 10,000+."""
    if value is None:
        return NOTHING
    if isinstance(value, Count):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def rate(per_second: float) -> str:
    """Format a throughput: `12,300/s`, `0.4/s`, `3/min`."""
    return wording.rate(per_second) if per_second else NOTHING


def percent(share: float | None) -> str:
    return NOTHING if share is None else wording.percent(share)


def length(of: timedelta | None) -> str:
    return NOTHING if of is None else wording.length(of)


def ago(at: datetime | None, now: datetime) -> Markup:
    """Format a time relative to now; the exact time is in the title."""
    if at is None:
        return escape(NOTHING)
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(), wording.instant(exact), wording.ago(at, now)
    )


def due(at: datetime | None, now: datetime) -> Markup:
    """Format when something is due: `now` if that time has passed or is unknown."""
    return Markup("now") if at is None or at <= now else ago(at, now)


def moment(at: datetime | None) -> Markup:
    """Format a time exactly; a script converts it to the time zone of the browser."""
    if at is None:
        return escape(NOTHING)
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" data-local>{}</time>').format(
        exact.isoformat(), wording.instant(exact)
    )


def prose(text: str) -> Markup:
    """Turn `text in backticks` into <code>."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # unbalanced: a backtick may be part of a name
        return escape(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if n % 2 else escape(part)
        for n, part in enumerate(parts)
    )


def trend(
    values: Sequence[int],
    label: str,
    css: str = "trend",
    bad: Sequence[int] = (),
    unit: str | None = None,
) -> Markup:
    """Draw numbers over time as SVG bars, oldest first, with `label` as text alternative.

    `bad` is the failed part of each number; it has its own colour and a minimum height. With a
    `unit` such as `min` the value of the highest bar is shown below.
    """
    top = max(values, default=0) or 1
    if unit is not None:
        label += f"; {max(values, default=0):,} in a {unit} at most"
    lower = [max(1.5, 20 * part / top) if part else 0.0 for part in bad] or [0.0] * len(values)
    upper = [max(low, 20 * value / top) for value, low in zip(values, lower, strict=True)]
    svg = Markup(
        '<svg class="{}" viewBox="0 0 {} 20" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title>{}{}</svg>'
    ).format(
        css,
        max(len(values), 1),
        label,
        label,
        _bars(lower, upper, ""),
        _bars([0.0] * len(lower), lower, "bad"),
    )
    if unit is None or not any(values):
        return svg
    scale = Markup('<span class="scale" aria-hidden="true">max {}/{}</span>')
    return svg + scale.format(number(max(values)), unit)


def _bars(feet: Sequence[float], heads: Sequence[float], css: str) -> Markup:
    """Draw bars as one path, which keeps live updates small."""
    path = "".join(
        f"M{n} {20 - foot:.4g}V{20 - head:.4g}h1V{20 - foot:.4g}z"
        for n, (foot, head) in enumerate(zip(feet, heads, strict=True))
        if head > foot
    )
    return Markup('<path class="{}" d="{}"/>').format(css, path) if path else Markup("")


def hour(minutes: Sequence[Minute], css: str = "trend") -> Markup:
    """Draw the attempts of each minute, with failed ones in their own colour."""
    good = sum(minute.completed for minute in minutes)
    bad = [minute.failed + minute.retried for minute in minutes]
    return trend(
        [minute.completed + lost for minute, lost in zip(minutes, bad, strict=True)],
        f"last hour: {good:,} completed, {sum(bad):,} failed attempts",
        css,
        bad,
        "minute" if css == "trend" else None,  # the large chart has its own axis
    )


def mix(lanes: Sequence[Lane]) -> Markup:
    """Draw the share of each priority among the jobs in line, highest first."""
    total = sum(lane.jobs.jobs for lane in lanes) or 1
    bars: list[Markup] = []
    at = 0.0
    for lane in lanes:
        width = 100 * lane.jobs.jobs / total
        above, below = lane.priority > DEFAULT_PRIORITY, lane.priority < DEFAULT_PRIORITY
        css = "high" if above else "low" if below else "usual"
        bars.append(
            Markup('<rect class="{}" x="{:.4g}" width="{:.4g}" height="8"/>').format(
                css, at, max(0.5, width - 0.7)
            )
        )
        at += width
    label = wording.some([f"{wording.priority(lane.priority)}: {lane.jobs}" for lane in lanes], 6)
    return Markup(
        '<svg class="mix" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title>{}</svg>'
    ).format(label, label, Markup("").join(bars))


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("howdah.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = environment.filters
    for function in (number, rate, percent, length, ago, due, moment, prose, trend, hour, mix):
        filters[function.__name__] = function
    filters |= {
        "priority": wording.priority,
        "typed_length": wording.typed_length,
        "short_id": shortened,
        "one_line": one_line,
        "key_slots": wording.key_slots,
    }
    return environment


def _template_values(
    request: Request, values: dict[str, Any]
) -> tuple[dict[str, Any], Environment]:
    """Add the values that every template may use."""

    def url(path: str, **query: object) -> str:
        return url_to(request, path, **query)

    context = request.app.state.context
    visitor = visitor_in(request.scope)
    common: dict[str, Any] = {
        "url": url,
        "path": inner_path(request.scope),
        "query": request.url.query,
        "who": None if visitor is None else visitor.who,
        "csrf_token": "" if visitor is None else visitor.csrf_token,
        "settings": context.settings,
        "database": context.store.database_name,
        "flash": getattr(request.state, "flash", None),
        "live": None,
        "can_log_out": request.app.state.login is not None,
        "version": VERSION,
        "now": datetime.now(UTC),
    }
    return common | values, _templates()


def render(
    request: Request, template: str, values: dict[str, Any], status_code: int = 200
) -> Response:
    """Return a page as a response."""
    full, templates = _template_values(request, values)
    return HTMLResponse(templates.get_template(template).render(full), status_code)


def render_block(request: Request, template: str, block: str, values: dict[str, Any]) -> str:
    """Render one block of a page."""
    full, templates = _template_values(request, values)
    page: Template = templates.get_template(template)
    return "".join(page.blocks[block](page.new_context(full)))


def json_response(value: object, status_code: int = 200) -> Response:
    """Return JSON as a response."""
    return Response(msgspec.json.encode(value), status_code, media_type="application/json")
