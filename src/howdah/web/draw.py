"""Draw: values as HTML, always escaped, and templates as answers.

Comes before  every page

The filters are what a template may do to a value: `{{ at | ago(now) }}`. They return text, which is
escaped when it is put in, or markup that was escaped here.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from howdah.job import Priority
from howdah.observe import wording
from howdah.observe.count import Count
from howdah.version import VERSION
from howdah.web.paths import inner_path, outer

NOTHING = "\u2013"  # where there is no value
_NAMES = {int(priority): priority.name.lower() for priority in Priority}


def number(value: float | Count | None) -> str:
    """Word a number or a count for people: 1,234 or 10,000+."""
    if value is None:
        return NOTHING
    if isinstance(value, Count):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def rate(per_second: float) -> str:
    """Word a throughput: `12,300/s`, `0.4/s`, `3/min`."""
    if per_second >= 10:
        return f"{per_second:,.0f}/s"
    if per_second >= 0.5:
        return f"{per_second:.1f}/s"
    return f"{per_second * 60:.0f}/min" if per_second else NOTHING


def percent(share: float | None) -> str:
    if share is None:
        return NOTHING
    return f"{share:.0%}" if share >= 0.1 or not share else f"{share:.1%}"


def length(of: timedelta | None) -> str:
    return NOTHING if of is None else wording.length(of)


def ago(at: datetime | None, now: datetime) -> Markup:
    """Word a moment by its distance; the exact moment is in the title."""
    if at is None:
        return escape(NOTHING)
    past = now - at
    said = f"in {wording.length(-past)}" if past < timedelta() else f"{wording.length(past)} ago"
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(), wording.instant(exact), said
    )


def moment(at: datetime | None) -> Markup:
    """Word a moment exactly; the page's script puts it into the reader's own time zone."""
    if at is None:
        return escape(NOTHING)
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" data-local>{}</time>').format(
        exact.isoformat(), wording.instant(exact)
    )


def priority(value: int) -> str:
    return _NAMES.get(value, str(value))


def trend(values: list[int], label: str, css: str = "trend") -> Markup:
    """Draw numbers in time as bars of an SVG, oldest first, with a text for who cannot see it."""
    top = max(values, default=0) or 1
    bars = [
        Markup('<rect x="{}" y="{:.1f}" width="1" height="{:.1f}"/>').format(
            n, 20 - 20 * value / top, 20 * value / top
        )
        for n, value in enumerate(values)
        if value
    ]
    return Markup(
        '<svg class="{}" viewBox="0 0 {} 20" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title>{}</svg>'
    ).format(css, max(len(values), 1), label, label, Markup("").join(bars))


@cache
def _templates() -> Environment:
    made = Environment(
        loader=PackageLoader("howdah.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    words: dict[str, Any] = made.filters
    for word in (number, rate, percent, length, ago, moment, priority, trend):
        words[word.__name__] = word
    return made


def _context(request: Request, context: dict[str, Any]) -> tuple[dict[str, Any], Environment]:
    """Add what every template may use."""

    def url(path: str, **query: object) -> str:
        return outer(request, path, **query)

    desk = request.app.state.desk
    known: dict[str, Any] = {
        "url": url,
        "path": inner_path(request.scope),
        "query": request.url.query,
        "who": getattr(request.state, "who", None),
        "pledge": getattr(request.state, "pledge", ""),
        "settings": desk.settings,
        "said": getattr(request.state, "said", None),
        "live": None,
        "version": VERSION,
        "now": datetime.now(UTC),
    }
    return known | context, _templates()


def render(
    request: Request, template: str, context: dict[str, Any], status_code: int = 200
) -> Response:
    """Answer with a whole page."""
    full, templates = _context(request, context)
    return HTMLResponse(templates.get_template(template).render(full), status_code)


def render_block(request: Request, template: str, block: str, context: dict[str, Any]) -> str:
    """Draw one block of a page."""
    full, templates = _context(request, context)
    found: Template = templates.get_template(template)
    return "".join(found.blocks[block](found.new_context(full)))


def json_response(value: object, status_code: int = 200) -> Response:
    """Answer with JSON."""
    return Response(msgspec.json.encode(value), status_code, media_type="application/json")
