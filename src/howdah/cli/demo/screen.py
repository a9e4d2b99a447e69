"""Screen: what the demo looks like, live on a terminal and in plain lines elsewhere.

Comes after  news.py and play.py, which say what there is to see
"""

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

from howdah.cli import words
from howdah.cli.demo.news import Look, News, Newsroom
from howdah.job import Job, Priority
from howdah.observe.wording import priority
from howdah.states import State
from howdah.text.printable import one_line

ROWS = 8  # running jobs shown: two workers with four slots each
AROUND = 7  # lines that are neither running jobs nor news
PLAIN_EVERY = 2.0  # seconds between two lines of counts

PRIORITY_STYLES = {Priority.EXPLICIT: "bold", Priority.DISCOVERED: "", Priority.BACKFILL: "dim"}


class Screen(Protocol):
    """A way to show the demo."""

    def open(self) -> AbstractContextManager[Any]: ...
    def tell(self, news: News) -> None: ...
    def see(self, look: Look) -> None: ...


def screen_for(console: Console) -> Screen:
    return LiveScreen(console) if console.is_terminal else Lines(console)


class Lines:
    """One line per thing that happens."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._newsroom = Newsroom()
        self._counted_at = 0.0

    def open(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def tell(self, news: News) -> None:
        self._console.print(_line(news), soft_wrap=True)

    def see(self, look: Look) -> None:
        for news in self._newsroom.compare(look):
            self.tell(news)
        if look.at - self._counted_at >= PLAIN_EVERY:
            self._counted_at = look.at
            running = ", ".join(
                one_line(f"{job.job_type} {words.progress(job)}") for job in _running(look)
            )
            self.tell(News(look.at, "", f"{_counts(look)}"))
            if running:
                self.tell(News(look.at, "", f"running: {running}"))


class LiveScreen:
    """Bars, counters and the last news, redrawn in place."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._newsroom = Newsroom()
        self._news: list[News] = []
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def open(self) -> AbstractContextManager[Any]:
        return self._live

    def tell(self, news: News) -> None:
        if not news.minor:
            self._news.append(news)

    def see(self, look: Look) -> None:
        for news in self._newsroom.compare(look):
            self.tell(news)
        room = max(self._console.height - ROWS - AROUND, 3)
        self._live.update(_frame(look, self._news[-room:]), refresh=True)


def _frame(look: Look, news: Sequence[News]) -> RenderableType:
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(
        Text.assemble(("howdah", "bold"), ("  read back from PostgreSQL, as it happens", "dim")),
        Text(f"{look.at:.1f}s", style="dim"),
    )
    return Group(
        head,
        Rule(style="dim"),
        _counts(look),
        _workers(look),
        Text(),
        _bars(_running(look)[:ROWS], look),
        Rule(style="dim"),
        *(_line(one) for one in news),
    )


def _counts(look: Look) -> Text:
    parts: list[Text] = []
    for state in State:
        count = sum(job.status is state for job in look.jobs)
        style = words.STYLES[state] if count else "dim"
        parts.append(Text(f"{count} {state}", style=style))
    line = Text("  ").join(parts)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _workers(look: Look) -> Text:
    parts: list[Text] = []
    for worker in sorted(look.workers, key=lambda worker: worker.id):
        pid = look.pid(worker.id)
        if worker.alive:
            parts.append(Text(f"● {pid} holds {worker.holds}", style="green"))
        else:
            silent = words.length(worker.silent_for)
            holds = f", holds {worker.holds}" if worker.holds else ""
            parts.append(Text(f"✗ {pid} silent for {silent}{holds}", style="red"))
    return Text.assemble("workers  ", Text("   ").join(parts) if parts else "none yet")


def _running(look: Look) -> list[Job]:
    at_work = [job for job in look.jobs if job.status in (State.CLAIMED, State.RUNNING)]
    return sorted(at_work, key=lambda job: (-job.priority, job.id))


def _bars(jobs: Sequence[Job], look: Look) -> Table:
    table = Table.grid(expand=True, padding=(0, 2, 0, 0))
    for width in (13, 10):
        table.add_column(width=width, no_wrap=True)
    table.add_column(ratio=1, min_width=8)
    table.add_column(width=4, justify="right", no_wrap=True)
    table.add_column(width=10, no_wrap=True)
    table.add_column(width=5, no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    silent = {worker.id for worker in look.workers if not worker.alive}
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
            Text(look.pid(job.worker_id), style="red" if lost else "green"),
        )
    for _ in range(ROWS - len(jobs)):
        table.add_row("")
    return table


def _line(news: News) -> Text:
    return Text.assemble(
        (f"{news.at:5.1f}s  ", "dim"),
        (f"{news.kind:<9}", news.style),
        one_line(news.text),
        no_wrap=True,
        overflow="ellipsis",
    )
