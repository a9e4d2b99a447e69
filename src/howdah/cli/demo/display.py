"""Display: shows the demo, live on a terminal and as plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from howdah.cli import formatting
from howdah.cli.demo.changes import Change, ChangeDetector, Snapshot
from howdah.job import Job, Priority
from howdah.states import State
from howdah.text.printable import one_line
from howdah.text.wording import priority

ROWS = 8  # running jobs shown: two workers with four slots each
OTHER_LINES = 7  # lines that are neither running jobs nor changes
COUNT_EVERY = 2.0  # seconds between two lines of counts

PRIORITY_STYLES = {Priority.EXPLICIT: "bold", Priority.DISCOVERED: "", Priority.BACKFILL: "dim"}


class Display(Protocol):
    """A way to show the demo."""

    def open(self) -> AbstractContextManager[Any]: ...
    def show_change(self, change: Change) -> None: ...
    def show_snapshot(self, snapshot: Snapshot) -> None: ...


def display_for(console: Console) -> Display:
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)


class PlainDisplay:
    """One line per change."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._detector = ChangeDetector()
        self._counted_at = 0.0

    def open(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def show_change(self, change: Change) -> None:
        self._console.print(_line(change), soft_wrap=True)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        for change in self._detector.compare(snapshot):
            self.show_change(change)
        if snapshot.at - self._counted_at >= COUNT_EVERY:
            self._counted_at = snapshot.at
            running = ", ".join(
                one_line(f"{job.job_type} {formatting.progress(job)}") for job in _running(snapshot)
            )
            self.show_change(Change(snapshot.at, "", f"{_counts(snapshot)}"))
            if running:
                self.show_change(Change(snapshot.at, "", f"running: {running}"))


class LiveDisplay:
    """Counts, bars and the last changes, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._detector = ChangeDetector()
        self._changes: list[Change] = []
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def open(self) -> AbstractContextManager[Any]:
        return self._live

    def show_change(self, change: Change) -> None:
        if not change.minor:
            self._changes.append(change)

    def show_snapshot(self, snapshot: Snapshot) -> None:
        for change in self._detector.compare(snapshot):
            self.show_change(change)
        lines = max(self._console.height - ROWS - OTHER_LINES, 3)
        self._live.update(_frame(snapshot, self._changes[-lines:]), refresh=True)


def _frame(snapshot: Snapshot, changes: Sequence[Change]) -> RenderableType:
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(
        Text.assemble(("howdah", "bold"), ("  live, read from PostgreSQL", "dim")),
        Text(f"{snapshot.at:.1f}s", style="dim"),
    )
    return Group(
        head,
        Rule(style="dim"),
        _counts(snapshot),
        _workers(snapshot),
        Text(),
        _bars(_running(snapshot)[:ROWS], snapshot),
        Rule(style="dim"),
        *(_line(change) for change in changes),
    )


def _counts(snapshot: Snapshot) -> Text:
    parts: list[Text] = []
    for state in State:
        count = sum(job.status is state for job in snapshot.jobs)
        style = formatting.STYLES[state] if count else "dim"
        parts.append(Text(f"{count} {state}", style=style))
    line = Text("  ").join(parts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _workers(snapshot: Snapshot) -> Text:
    parts: list[Text] = []
    for worker in sorted(snapshot.workers, key=lambda worker: worker.id):
        pid = snapshot.pid(worker.id)
        if worker.alive:
            parts.append(Text(f"● {pid} holds {worker.holds}", style="green"))
        else:
            silent = formatting.length(worker.silent_for)
            holds = f", holds {worker.holds}" if worker.holds else ""
            parts.append(Text(f"✗ {pid} silent for {silent}{holds}", style="red"))
    return Text.assemble("workers  ", Text("   ").join(parts) if parts else "none yet")


def _running(snapshot: Snapshot) -> list[Job]:
    at_work = [job for job in snapshot.jobs if job.status in (State.CLAIMED, State.RUNNING)]
    return sorted(at_work, key=lambda job: (-job.priority, job.id))


def _bars(jobs: Sequence[Job], snapshot: Snapshot) -> Table:
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    for width in (13, 10):
        table.add_column(width=width, no_wrap=True)
    table.add_column(ratio=1, min_width=8)
    table.add_column(width=4, justify="right", no_wrap=True)
    table.add_column(width=10, no_wrap=True)
    table.add_column(width=5, no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    silent = {worker.id for worker in snapshot.workers if not worker.alive}
    for job in jobs:
        lost = job.worker_id in silent
        table.add_row(
            one_line(job.job_type),
            Text(priority(job.priority), PRIORITY_STYLES.get(Priority(job.priority), "")),
            ProgressBar(
                total=100, completed=job.progress, complete_style="red" if lost else "blue"
            ),
            f"{job.progress}%",
            Text(one_line(job.current_stage or job.status), style="red" if lost else ""),
            Text(f"try {job.attempts}", style="yellow" if job.attempts > 1 else "dim"),
            Text(snapshot.pid(job.worker_id), style="red" if lost else "green"),
        )
    for _ in range(ROWS - len(jobs)):
        table.add_row("")
    return table


def _line(change: Change) -> Text:
    return Text.assemble(
        (f"{change.at:5.1f}s  ", "dim"),
        (f"{change.kind:<9}", change.style),
        one_line(change.text),
        no_wrap=True,
        overflow="ellipsis",
    )
