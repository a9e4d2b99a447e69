"""About: a job, a type, a worker, the problems, each as text for `details.py`."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from howdah.observe import Level, Life, Problem, TypeNow, WorkerNow
from howdah.observe.wording import instant, length, priority
from howdah.states import State
from howdah.text.printable import one_line
from howdah.top import words
from howdah.top.table_workers import state, types_of

MOST = 20_000  # characters of one payload, result or traceback
STYLES = {
    State.PENDING: words.BUSY,
    State.CLAIMED: words.BUSY,
    State.RUNNING: words.BUSY,
    State.COMPLETED: words.GOOD,
    State.FAILED: words.BAD,
    State.CANCELLED: words.WARN,
}


class Telling:
    """Text that grows: headings, facts and blocks."""

    def __init__(self) -> None:
        self._parts: list[RenderableType] = []

    @property
    def told(self) -> Group:
        return Group(*self._parts)

    def heading(self, said: str) -> None:
        self._parts.append(Text(f"\n{one_line(said)}", style="bold"))

    def fact(self, name: str, value: str | Text | None) -> None:
        """Tell one thing behind its name, if there is anything to tell."""
        if value is None or not str(value):
            return
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(width=10, justify="right", style=words.DIM)
        row.add_column(overflow="fold")
        row.add_row(name, Text(one_line(value)) if isinstance(value, str) else value)
        self._parts.append(row)

    def line(self, *pieces: str | Text | tuple[str, str]) -> None:
        self._parts.append(Padding(Text.assemble(*pieces, overflow="fold"), (0, 0, 0, 2)))

    def block(self, said: str, style: str = "") -> None:
        """Lay out text of many lines, a little to the right."""
        shown = words.clean(said[:MOST]).rstrip() + ("\n…" if len(said) > MOST else "")
        self._parts.append(Padding(Text(shown, style=style, overflow="fold"), (0, 0, 0, 2)))


def job(life: Life) -> Group:
    """Tell a job's whole life."""
    one, telling = life.job, Telling()
    telling.fact("type", one.job_type)
    telling.fact("id", str(one.id))
    telling.fact("status", Text(str(one.status), STYLES[one.status]))
    telling.fact(
        "progress",
        Text.assemble(words.bar(one.progress, 25), f" {one_line(one.current_stage or '')}"),
    )
    telling.fact("priority", priority(one.priority))
    telling.fact("attempts", f"{one.attempts} of {one.max_attempts}")
    telling.fact("worker", one.worker_id)
    telling.fact("waited", length(life.waited))
    telling.fact("ran", length(life.ran))
    telling.heading("Timeline")
    for span in life.spans:
        what = f"{span.kind}" if span.attempt is None else f"{span.kind}, attempt {span.attempt}"
        took = length((span.ended or life.at) - span.began)
        bad = span.outcome in ("failed", "retried")
        telling.line(
            (f"{_clock(span.began, life.at)}  ", words.DIM),
            f"{what:<20}  {took:>8}",
            ("" if span.ended else " so far", words.DIM),
            (f"  {span.outcome}" if span.outcome else "", words.BAD if bad else words.GOOD),
            (f"  {one_line(span.worker_id or '')}", words.DIM),
        )
    for span in life.spans:
        if span.error:
            telling.heading(f"Error of attempt {span.attempt}")
            telling.block(span.error, words.BAD)
            if span.traceback:
                telling.block(span.traceback)
    if one.last_error and not any(span.error for span in life.spans):
        telling.heading("Error")
        telling.block(one.last_error, words.BAD)
    telling.heading("Payload")
    telling.block(_json(one.data))
    if one.result is not None:
        telling.heading("Result")
        telling.block(_json(one.result))
    if life.events:
        telling.heading(f"Events, the last {len(life.events)}")
        for event in life.events:
            said = msgspec.json.encode(event.data).decode()[:MOST]
            telling.line(
                (f"{_clock(event.created_at, life.at)}  ", words.DIM),
                f"{one_line(event.kind)}  {one_line(said)}",
            )
    return telling.told


def job_type(one: TypeNow, why: str) -> Group:
    """Tell how a type is."""
    telling = Telling()
    telling.fact("type", one.job_type)
    telling.fact("why", why)
    if one.paused is not None:
        telling.fact("paused", f"since {instant(one.paused.paused_at)} by {one.paused.paused_by}")
        telling.fact("reason", one.paused.reason)
    telling.fact(
        "waiting", f"{one.waiting}" + (f", oldest {length(one.oldest)}" if one.oldest else "")
    )
    telling.fact("later", f"{one.scheduled}, {one.retrying:,} of them after a failed attempt")
    telling.fact("running", f"{one.running:,} and {one.claimed:,} claimed")
    telling.fact("workers", f"{one.listeners:,} know it")
    telling.fact("jobs/s", words.rate(one.per_second) or "0")
    telling.fact("failed", f"{words.share(one.failure_rate) or '0%'} of the attempts lately")
    for name, times in (("pickup", one.pickup), ("run", one.run)):
        if times.jobs:
            telling.fact(name, f"p50 {words.short(times.p50)}, p99 {words.short(times.p99)}")
    for name, counted in (("today", one.finished_today), ("kept", one.finished)):
        said = ", ".join(f"{jobs:,} {state}" for state, jobs in counted.items())
        telling.fact(name, said)
    if one.lanes:
        telling.heading("In line, by priority")
        for lane in one.lanes:
            told = f"{lane.jobs!s:>8} waiting, oldest {length(lane.oldest)}"
            telling.line(f"{priority(lane.priority):>16}  {told}")
    if one.trend:
        telling.heading("The last hour, minute by minute")
        ended = [minute.completed + minute.failed + minute.retried for minute in one.trend]
        bad = [minute.failed + minute.retried for minute in one.trend]
        telling.line(("   ended  ", words.DIM), (words.trend(ended, 60), words.BUSY))
        telling.line(("  failed  ", words.DIM), (words.trend(bad, 60), words.BAD))
    return telling.told


def worker(one: WorkerNow, now: datetime) -> Group:
    """Tell how a worker is and what it runs."""
    telling = Telling()
    telling.fact("worker", one.id)
    telling.fact("state", state(one))
    telling.fact("beat", f"{length(one.silent_for)} ago" if one.silent_for is not None else None)
    telling.fact("started", instant(one.started_at) if one.started_at else None)
    telling.fact("holds", f"{one.holds:,}")
    for name in ("slots", "threads", "running", "host", "pid", "version"):
        if name in one.info:
            telling.fact(name, str(one.info[name]))
    telling.fact("types", ", ".join(types_of(one)))
    if one.attempts:
        telling.heading("At work")
    for attempt in one.attempts:
        since = attempt.started_at or attempt.claimed_at
        telling.line(
            words.bar(attempt.progress, 15),
            f"  {one_line(attempt.job_type)}",
            (f"  {one_line(attempt.current_stage or '')}", words.BUSY),
            (f"  {words.age(now - since) if since else ''}", words.DIM),
            (f"  {attempt.id}", words.DIM),
        )
    return telling.told


def problems(found: list[Problem]) -> Group:
    """Tell everything that a person should look at, and what to do."""
    telling = Telling()
    if not found:
        telling.line(("Nothing to worry about.", words.GOOD))
    for one in found:
        style = words.BAD if one.level is Level.CRITICAL else words.WARN
        telling.line((f"▲ {one_line(one.sentence)}", style))
        telling.line(f"{one_line(one.advice)}\n")
    return telling.told


def _clock(at: datetime, now: datetime) -> str:
    """Word a moment in the reader's own time zone, with the day where it was another."""
    shown = at.astimezone()
    return f"{shown:%H:%M:%S}" if now - at < timedelta(days=1) else f"{shown:%m-%d %H:%M}"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
