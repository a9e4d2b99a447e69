"""Draw: values as HTML, always escaped, and templates as answers.

Comes before  every page

The filters are what a template may do to a value: `{{ at | ago(now) }}`. They return text, which is
escaped when it is put in, or markup that was escaped here.
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
from howdah.observe import wording
from howdah.observe.count import Count
from howdah.observe.overview import Lane, Minute
from howdah.observe.short_id import shortened
from howdah.version import VERSION
from howdah.web.paths import inner_path, outer
from howdah.web.visitor import visitor_in

NOTHING = "\u2013"  # where there is no value
USUAL = int(Priority.DISCOVERED)


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
    if of is None:
        return NOTHING
    milliseconds = of.total_seconds() * 1000
    return f"{milliseconds:.1f} ms" if 0 < milliseconds < 9.95 else wording.length(of)


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


def due(at: datetime | None, now: datetime) -> Markup:
    """Word when something is due; what is due already, or at work, is so now."""
    return Markup("now") if at is None or at <= now else ago(at, now)


def moment(at: datetime | None) -> Markup:
    """Word a moment exactly; the page's script puts it into the reader's own time zone."""
    if at is None:
        return escape(NOTHING)
    exact = at.astimezone(UTC)
    return Markup('<time datetime="{}" data-local>{}</time>').format(
        exact.isoformat(), wording.instant(exact)
    )


def prose(text: str) -> Markup:
    """Put what stands between backticks in a sentence of ours into the letters of code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # one was left open: it may be part of a name
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
    """Draw numbers in time as bars of an SVG, oldest first, with a text for who cannot see it.

    `bad` is the part of each that gets a colour of its own; even a small one can be seen. With a
    `unit` such as `min` the scale stands below: how many the highest bar is.
    """
    top = max(values, default=0) or 1
    if unit is not None:
        label += f"; {max(values, default=0):,} in a {unit} at most"
    lower = [max(1.5, 20 * part / top) if part else 0.0 for part in bad] or [0.0] * len(values)
    upper = [max(low, 20 * value / top) for value, low in zip(values, lower, strict=True)]
    drawn = Markup(
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
        return drawn
    scale = Markup('<span class="scale" aria-hidden="true">max {}/{}</span>')
    return drawn + scale.format(number(max(values)), unit)


def _bars(feet: Sequence[float], heads: Sequence[float], css: str) -> Markup:
    """Draw bars one beside the other as one path: it is sent again and again."""
    path = "".join(
        f"M{n} {20 - foot:.4g}V{20 - head:.4g}h1V{20 - foot:.4g}z"
        for n, (foot, head) in enumerate(zip(feet, heads, strict=True))
        if head > foot
    )
    return Markup('<path class="{}" d="{}"/>').format(css, path) if path else Markup("")


def hour(minutes: Sequence[Minute], css: str = "trend") -> Markup:
    """Draw how attempts ended, minute by minute; failed ones in their own colour."""
    good = sum(minute.completed for minute in minutes)
    bad = [minute.failed + minute.retried for minute in minutes]
    return trend(
        [minute.completed + lost for minute, lost in zip(minutes, bad, strict=True)],
        f"last hour: {good:,} completed, {sum(bad):,} failed attempts",
        css,
        bad,
        "minute" if css == "trend" else None,  # the large one has an axis of its own
    )


def mix(lanes: Sequence[Lane]) -> Markup:
    """Draw how the jobs in line share out over the priorities, highest first, and say it too."""
    total = sum(lane.jobs.jobs for lane in lanes) or 1
    bars: list[Markup] = []
    at = 0.0
    for lane in lanes:
        wide = 100 * lane.jobs.jobs / total
        css = "high" if lane.priority > USUAL else "low" if lane.priority < USUAL else "usual"
        bars.append(
            Markup('<rect class="{}" x="{:.4g}" width="{:.4g}" height="8"/>').format(
                css, at, max(0.5, wide - 0.7)
            )
        )
        at += wide
    said = wording.some([f"{wording.priority(lane.priority)}: {lane.jobs}" for lane in lanes], 6)
    return Markup(
        '<svg class="mix" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" '
        'aria-label="{}"><title>{}</title>{}</svg>'
    ).format(said, said, Markup("").join(bars))


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
    for word in (number, rate, percent, length, ago, due, moment, prose, trend, hour, mix):
        words[word.__name__] = word
    words |= {"priority": wording.priority, "short_id": shortened}
    return made


def _context(request: Request, context: dict[str, Any]) -> tuple[dict[str, Any], Environment]:
    """Add what every template may use."""

    def url(path: str, **query: object) -> str:
        return outer(request, path, **query)

    desk = request.app.state.desk
    visitor = visitor_in(request.scope)
    known: dict[str, Any] = {
        "url": url,
        "path": inner_path(request.scope),
        "query": request.url.query,
        "who": None if visitor is None else visitor.who,
        "pledge": "" if visitor is None else visitor.pledge,
        "settings": desk.settings,
        "database": desk.store.database_name,
        "said": getattr(request.state, "said", None),
        "live": None,
        "leave": request.app.state.login is not None,
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
