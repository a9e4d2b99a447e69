"""Timeline: a job's life as a bar, and how long the rest of it may take.

Comes after  observe/history.py
Comes before pages/job.py
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from markupsafe import Markup

from howdah.observe import Kind, Life, Span
from howdah.observe.wording import length
from howdah.states import State

WIDTH = 1000.0
LEAST = 5.0  # of the width: what is short is seen too
RAN_LEAST = timedelta(seconds=2)  # before that, an estimate is a guess
KNOWN_LEAST = 2  # percent


class Left(msgspec.Struct, frozen=True):
    """How fast a job gets on, and how long it will take if it goes on like that."""

    rate: str
    left: timedelta


def lasted(span: Span, now: datetime) -> timedelta:
    """Say how long a part of a life took, or has taken so far."""
    return max((span.ended or now) - span.began, timedelta())


def css(span: Span) -> str:
    """Name what a part looks like: by how an attempt ended, else by what it is."""
    return span.outcome or str(span.kind)


def words(span: Span) -> str:
    """Say what a job did in this part."""
    attempt = "" if span.attempt is None else f"attempt {span.attempt}, "
    match span.kind:
        case Kind.SCHEDULED:
            return "not due"
        case Kind.WAITING:
            return "in line"
        case Kind.CLAIMED:
            return f"{attempt}claimed, not started"
        case Kind.RUNNING:
            return f"{attempt}{span.outcome or 'running'}"


def bar(spans: Sequence[Span], now: datetime) -> Markup:
    """Draw the parts beside each other, each as wide as it was long."""
    lengths = [lasted(span, now) for span in spans]
    said = "; ".join(
        f"{words(span)} {length(long)}" for span, long in zip(spans, lengths, strict=True)
    )
    parts: list[Markup] = []
    x = 0.0
    for span, long, width in zip(spans, lengths, widths(lengths), strict=True):
        parts.append(
            Markup(
                '<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="20">'
                "<title>{}: {}</title></rect>"
            ).format(css(span), x, max(width - 1, 1), words(span), length(long))
        )
        x += width
    return Markup(
        '<svg class="life" viewBox="0 0 {:.0f} 20" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(WIDTH, said or "nothing yet", Markup("").join(parts))


def widths(lengths: Sequence[timedelta]) -> list[float]:
    """Divide the width by length, so that the shortest can still be seen."""
    if not lengths:
        return []
    least = min(LEAST, WIDTH / len(lengths))
    free = WIDTH - least * len(lengths)
    whole = sum(lengths, timedelta())
    if not whole:
        return [WIDTH / len(lengths)] * len(lengths)
    return [least + free * (one / whole) for one in lengths]


def left(life: Life) -> Left | None:
    """Estimate how long a job will still run; None when nobody can tell.

    Progress stays what it was when an attempt ends, so only a first attempt's is surely its own.
    """
    job = life.job
    if job.status is not State.RUNNING or job.started_at is None or job.attempts != 1:
        return None
    ran = life.at - job.started_at
    if ran < RAN_LEAST or not KNOWN_LEAST <= job.progress < 100:
        return None
    return Left(_rate(job.progress, ran), ran * ((100 - job.progress) / job.progress))


def _rate(percent: int, ran: timedelta) -> str:
    """Word how fast progress grows, in the smallest unit in which that is 1 or more."""
    for unit, name in ((1, "second"), (60, "minute"), (3600, "hour")):
        rate = percent / (ran.total_seconds() / unit)
        if rate >= 1:
            return f"{rate:.1f}% per {name}"
    return f"{percent / (ran / timedelta(days=1)):.1f}% per day"
