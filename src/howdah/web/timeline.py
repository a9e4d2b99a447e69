"""Timeline: the waits and attempts of a job as a bar, and an estimate of its end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
from markupsafe import Markup

from howdah.observe import JobHistory, Kind, Span
from howdah.states import State
from howdah.text.wording import length, progress_rate

WIDTH = 1000.0
MIN_WIDTH = 5.0  # so that short spans are visible
MIN_RUN = timedelta(seconds=2)  # for an estimate
MIN_PROGRESS = 2  # percent, for an estimate


class Remaining(msgspec.Struct, frozen=True):
    """The rate of progress, and the time that is left at this rate."""

    rate: str
    left: timedelta


def duration(span: Span, now: datetime) -> timedelta:
    """Return how long a span took, or has taken so far."""
    return max((span.ended or now) - span.began, timedelta())


def css(span: Span) -> str:
    """Return the CSS class of a span: the outcome of an attempt, else its kind."""
    return span.outcome or str(span.kind)


def describe(span: Span) -> str:
    """Describe a span."""
    attempt = "" if span.attempt is None else f"attempt {span.attempt}, "
    match span.kind:
        case Kind.SCHEDULED:
            return "not due"
        case Kind.LIMITED:
            return "waits for its key or limit"
        case Kind.WAITING:
            return "in line"
        case Kind.CLAIMED:
            return f"{attempt}claimed, not started"
        case Kind.RUNNING:
            return f"{attempt}{span.outcome or 'running'}"


def bar(spans: Sequence[Span], now: datetime) -> Markup:
    """Draw the spans side by side, each as wide as it was long."""
    lengths = [duration(span, now) for span in spans]
    label = "; ".join(
        f"{describe(span)} {length(long)}" for span, long in zip(spans, lengths, strict=True)
    )
    parts: list[Markup] = []
    x = 0.0
    for span, long, width in zip(spans, lengths, widths(lengths), strict=True):
        parts.append(
            Markup(
                '<rect class="{}" x="{:.1f}" y="0" width="{:.1f}" height="20">'
                "<title>{}: {}</title></rect>"
            ).format(css(span), x, max(width - 1, 1), describe(span), length(long))
        )
        x += width
    return Markup(
        '<svg class="timeline" viewBox="0 0 {:.0f} 20" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>'
    ).format(WIDTH, label or "nothing yet", Markup("").join(parts))


def widths(lengths: Sequence[timedelta]) -> list[float]:
    """Divide the width in proportion to the lengths, with a minimum for each."""
    if not lengths:
        return []
    least = min(MIN_WIDTH, WIDTH / len(lengths))
    free = WIDTH - least * len(lengths)
    whole = sum(lengths, timedelta())
    if not whole:
        return [WIDTH / len(lengths)] * len(lengths)
    return [least + free * (length / whole) for length in lengths]


def remaining(history: JobHistory) -> Remaining | None:
    """Estimate how long a job will still run; None if that is unknown.

    A retry keeps the progress of the last attempt, so only a first attempt gives an estimate.
    """
    job = history.job
    if job.status is not State.RUNNING or job.started_at is None or job.attempts != 1:
        return None
    ran = history.at - job.started_at
    if ran < MIN_RUN or not MIN_PROGRESS <= job.progress < 100:
        return None
    rate = progress_rate(job.progress / ran.total_seconds())
    return Remaining(rate, ran * ((100 - job.progress) / job.progress))
