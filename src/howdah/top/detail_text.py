"""Detail text: a job, a type, a worker or the problems as text for details.py."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from howdah.observe import JobHistory, Level, Problem, TypeNow, WorkerNow
from howdah.states import State
from howdah.text.printable import one_line
from howdah.text.wording import instant, length, priority
from howdah.top import formatting
from howdah.top.table_workers import state, types_of
from howdah.waits_for import WaitsFor

MAX_LENGTH = 20_000  # characters of one payload, result or traceback
STYLES = {
    State.PENDING: formatting.BUSY,
    State.CLAIMED: formatting.BUSY,
    State.RUNNING: formatting.BUSY,
    State.COMPLETED: formatting.GOOD,
    State.FAILED: formatting.BAD,
    State.CANCELLED: formatting.WARN,
}


class TextBuilder:
    """Builds a text of headings, facts, lines and blocks."""

    def __init__(self) -> None:
        self._parts: list[RenderableType] = []

    @property
    def text(self) -> Group:
        return Group(*self._parts)

    def heading(self, text: str) -> None:
        self._parts.append(Text(f"\n{one_line(text)}", style="bold"))

    def fact(self, name: str, value: str | Text | None) -> None:
        """Add a name with its value; an empty value is left out."""
        if value is None or not str(value):
            return
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(width=10, justify="right", style=formatting.DIM)
        row.add_column(overflow="fold")
        row.add_row(name, Text(one_line(value)) if isinstance(value, str) else value)
        self._parts.append(row)

    def line(self, *pieces: str | Text | tuple[str, str]) -> None:
        self._parts.append(Padding(Text.assemble(*pieces, overflow="fold"), (0, 0, 0, 2)))

    def block(self, text: str, style: str = "") -> None:
        """Add text of several lines, indented."""
        cut = "\n…" if len(text) > MAX_LENGTH else ""
        shown = formatting.clean(text[:MAX_LENGTH]).rstrip() + cut
        self._parts.append(Padding(Text(shown, style=style, overflow="fold"), (0, 0, 0, 2)))


def job(history: JobHistory, why: str | None = None) -> Group:
    """Describe a job and its history; `why` says more about what it waits for."""
    shown, builder = history.job, TextBuilder()
    builder.fact("type", shown.job_type)
    builder.fact("id", str(shown.id))
    builder.fact("status", Text(str(shown.status), STYLES[shown.status]))
    builder.fact(
        "progress",
        Text.assemble(
            formatting.bar(shown.progress, 25), f" {one_line(shown.current_stage or '')}"
        ),
    )
    builder.fact("priority", priority(shown.priority))
    builder.fact("attempts", f"{shown.attempts} of {shown.max_attempts}")
    builder.fact("unique key", shown.unique_key)
    builder.fact("key", shown.key)
    builder.fact("limit", shown.limited_by)
    if shown.waits_for is not None:
        builder.fact("waits for", f"{shown.waits_for.words}{'. ' + why if why else ''}")
    if shown.expires_at is not None:
        builder.fact("expires", instant(shown.expires_at))
    builder.fact("worker", shown.worker_id)
    builder.fact("waited", length(history.waited))
    builder.fact("ran", length(history.ran))
    builder.heading("Timeline")
    for span in history.spans:
        what = f"{span.kind}" if span.attempt is None else f"{span.kind}, attempt {span.attempt}"
        took = length((span.ended or history.at) - span.began)
        outcome_style = formatting.BAD if span.outcome in ("failed", "retried") else formatting.GOOD
        builder.line(
            (f"{_local_time(span.began, history.at)}  ", formatting.DIM),
            f"{what:<20}  {took:>8}",
            ("" if span.ended else " so far", formatting.DIM),
            (f"  {span.outcome}" if span.outcome else "", outcome_style),
            (f"  {one_line(span.worker_id or '')}", formatting.DIM),
        )
    for span in history.spans:
        if span.error:
            builder.heading(f"Error of attempt {span.attempt}")
            builder.block(span.error, formatting.BAD)
            if span.traceback:
                builder.block(span.traceback)
    if shown.last_error and not any(span.error for span in history.spans):
        builder.heading("Error")
        builder.block(shown.last_error, formatting.BAD)
    builder.heading("Payload")
    builder.block(_json(shown.data))
    if shown.result is not None:
        builder.heading("Result")
        builder.block(_json(shown.result))
    if history.events:
        builder.heading(f"Events, the last {len(history.events)}")
        for event in history.events:
            data = msgspec.json.encode(event.data).decode()[:MAX_LENGTH]
            builder.line(
                (f"{_local_time(event.created_at, history.at)}  ", formatting.DIM),
                f"{one_line(event.kind)}  {one_line(data)}",
            )
    return builder.text


def job_type(shown: TypeNow, why: str) -> Group:
    """Describe a job type."""
    builder = TextBuilder()
    builder.fact("type", shown.job_type)
    builder.fact("queue", shown.queue)
    builder.fact("why", why)
    if shown.paused is not None:
        builder.fact(
            "paused", f"since {instant(shown.paused.paused_at)} by {shown.paused.paused_by}"
        )
        builder.fact("reason", shown.paused.reason)
    builder.fact(
        "waiting",
        f"{shown.waiting}" + (f", oldest {length(shown.oldest)}" if shown.oldest else ""),
    )
    for waits_for, count in (
        (WaitsFor.KEY, shown.waiting_for_key),
        (WaitsFor.LIMIT, shown.waiting_for_limit),
    ):
        if count or count.more:
            builder.fact(f"for {waits_for}", f"{count} wait for {waits_for.plural}")
    builder.fact("later", f"{shown.scheduled}, {shown.retrying:,} of them after a failed attempt")
    builder.fact("running", f"{shown.running:,} and {shown.claimed:,} claimed")
    builder.fact("workers", f"{shown.workers:,} run it")
    builder.fact("jobs/s", formatting.rate(shown.per_second) or "0")
    builder.fact("failed", f"{formatting.share(shown.failure_rate) or '0%'} of recent attempts")
    for name, times in (("pickup", shown.pickup), ("run", shown.run)):
        if times.jobs:
            builder.fact(
                name, f"p50 {formatting.short(times.p50)}, p99 {formatting.short(times.p99)}"
            )
    for name, counted in (("today", shown.finished_today), ("kept", shown.finished)):
        builder.fact(name, ", ".join(f"{jobs:,} {state}" for state, jobs in counted.items()))
    if shown.lanes:
        builder.heading("Waiting, by priority")
        for lane in shown.lanes:
            waiting = f"{lane.jobs!s:>8} waiting, oldest {length(lane.oldest)}"
            builder.line(f"{priority(lane.priority):>16}  {waiting}")
    if shown.trend:
        builder.heading("The last hour, by minute")
        ended = [minute.completed + minute.failed + minute.retried for minute in shown.trend]
        bad = [minute.failed + minute.retried for minute in shown.trend]
        builder.line(("   ended  ", formatting.DIM), (formatting.trend(ended, 60), formatting.BUSY))
        builder.line(("  failed  ", formatting.DIM), (formatting.trend(bad, 60), formatting.BAD))
    return builder.text


def worker(shown: WorkerNow, now: datetime) -> Group:
    """Describe a worker and its jobs."""
    builder = TextBuilder()
    builder.fact("worker", shown.id)
    builder.fact("state", state(shown))
    builder.fact(
        "beat",
        f"{length(shown.silent_for)} ago" if shown.silent_for is not None else None,
    )
    builder.fact("started", instant(shown.started_at) if shown.started_at else None)
    builder.fact("holds", f"{shown.holds:,}")
    for name in ("slots", "threads", "running", "host", "pid", "version"):
        if name in shown.info:
            builder.fact(name, str(shown.info[name]))
    builder.fact("types", ", ".join(types_of(shown)))
    if shown.attempts:
        builder.heading("Running")
    for attempt in shown.attempts:
        since = attempt.started_at or attempt.claimed_at
        builder.line(
            formatting.bar(attempt.progress, 15),
            f"  {one_line(attempt.job_type)}",
            (f"  {one_line(attempt.current_stage or '')}", formatting.BUSY),
            (f"  {formatting.age(now - since) if since else ''}", formatting.DIM),
            (f"  {attempt.id}", formatting.DIM),
        )
    return builder.text


def problems(all_problems: list[Problem]) -> Group:
    """List the problems, and what to do about each."""
    builder = TextBuilder()
    if not all_problems:
        builder.line(("No problems.", formatting.GOOD))
    for problem in all_problems:
        style = formatting.BAD if problem.level is Level.CRITICAL else formatting.WARN
        builder.line((f"▲ {one_line(problem.sentence)}", style))
        builder.line(f"{one_line(problem.advice)}\n")
    return builder.text


def _local_time(at: datetime, now: datetime) -> str:
    """Format an instant in the local time zone; with the date if it is more than a day ago."""
    shown = at.astimezone()
    return f"{shown:%H:%M:%S}" if now - at < timedelta(days=1) else f"{shown:%m-%d %H:%M}"


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
