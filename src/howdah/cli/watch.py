"""howdah watch: follow one job until it ends.

On a terminal it shows a bar with stage, rate and time left, and emitted events above it. In a
pipe it prints a line per change, with --json one JSON document per line.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Any, Protocol, assert_never
from uuid import UUID

import click
import msgspec
from rich.console import RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn
from rich.text import Text

from howdah import Queue
from howdah.cli import formatting, output
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.cli.options import dsn_option, job_id, json_option
from howdah.cli.run_on_queue import run_on_queue
from howdah.events import Emitted, Ended, Event, Progressed
from howdah.job import Job
from howdah.states import State
from howdah.text.printable import clean, one_line
from howdah.text.wording import progress_rate


@click.command()
@click.argument("id", metavar="ID", type=job_id)
@click.option(
    "--after",
    type=click.IntRange(min=0),
    metavar="N",
    default=0,
    show_default=True,
    help="Skip events up to this number, to continue where you stopped.",
)
@json_option
@dsn_option
def watch(id: UUID, after: int, as_json: bool, dsn: str | None) -> None:
    """Follow one job until it ends.

    Shows its progress with stage, rate and time left, and the events that it emits. Exit code 0
    if it completed, 1 if it failed or was cancelled. Ctrl-C ends this command, not the job.
    """
    last_event = after

    async def work(queue: Queue) -> State:
        nonlocal last_event
        job = await queue.get(id)
        ended = job.status
        view = _view(job, as_json)
        with view.open():
            async for event in queue.handle(id).events(after):
                view.show(event)
                if isinstance(event, Emitted):
                    last_event = event.number
                elif isinstance(event, Ended):
                    ended = event.status
        return ended

    try:
        ended = run_on_queue(dsn, work)
    except KeyboardInterrupt:
        output.note(f"the job goes on; to continue: howdah watch {id} --after {last_event}")
        raise
    exit_with(ExitCode.OK if ended is State.COMPLETED else ExitCode.FAILED)


class View(Protocol):
    """A way to show the events of a job."""

    def open(self) -> AbstractContextManager[Any]: ...
    def show(self, event: Event) -> None: ...


def _view(job: Job, as_json: bool) -> View:
    if as_json:
        return JsonLines()
    return Bar(job) if output.console().is_terminal else Lines()


class ProgressRate:
    """How fast one attempt makes progress."""

    def __init__(self) -> None:
        self._attempt: int = -1
        self._first = (0.0, 0)
        self.rate: float = 0.0  # percent per second
        self.left: timedelta | None = None

    def add(self, event: Progressed, now: float) -> None:
        began, percent = self._first
        if event.attempt != self._attempt or event.percent < percent:
            self._attempt = event.attempt
            self._first = (now, event.percent)
            self.rate, self.left = 0.0, None
        elif event.percent > percent and now > began:
            self.rate = (event.percent - percent) / (now - began)
            self.left = timedelta(seconds=(100 - event.percent) / self.rate)

    def __str__(self) -> str:
        if self.left is None:
            return ""
        return f"{progress_rate(self.rate)}, {formatting.length(self.left)} left"


class JsonLines:
    """One JSON document per event."""

    def open(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def show(self, event: Event) -> None:
        output.show_json_line(
            {"event": type(event).__name__.lower(), **msgspec.structs.asdict(event)}
        )


class Lines:
    """One plain line per change."""

    def __init__(self) -> None:
        self._rate = ProgressRate()

    def open(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def show(self, event: Event) -> None:
        match event:
            case Progressed():
                self._rate.add(event, time.monotonic())
                stage = one_line(event.stage or "")
                parts = [event.status, f"{event.percent:>3}%", stage, str(self._rate)]
                output.show("  ".join(part for part in parts if part))
            case Emitted():
                output.show(_emitted(event))
            case Ended():
                output.show(_ended(event))
            case _:
                assert_never(event)


class Bar:
    """A live bar; emitted events are printed above it."""

    def __init__(self, job: Job) -> None:
        self._rate = ProgressRate()
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            _Stage(),
            console=output.console(),
            expand=True,
        )
        self._task = self._progress.add_task(
            one_line(job.job_type), total=100, stage="", status=State.PENDING
        )
        self._end: Ended | None = None

    @contextmanager
    def open(self) -> Generator[None]:
        with self._progress:
            yield
        if self._end is not None:
            output.show(_ended(self._end))

    def show(self, event: Event) -> None:
        match event:
            case Progressed():
                self._rate.add(event, time.monotonic())
                stage = one_line(event.stage or "") or event.status
                rate = "" if event.status.finished else str(self._rate)
                self._progress.update(
                    self._task,
                    completed=event.percent,
                    stage="  ".join(part for part in (stage, rate) if part),
                    status=event.status,
                )
            case Emitted():
                self._progress.print(_emitted(event))
            case Ended():
                self._end = event
            case _:
                assert_never(event)


class _Stage(TextColumn):
    """The stage in the colour of the job's state."""

    def __init__(self) -> None:
        super().__init__("")

    def render(self, task: Task) -> Text:
        return Text(task.fields["stage"], style=formatting.STYLES[task.fields["status"]])


def _emitted(event: Emitted) -> RenderableType:
    data = "" if event.data is None else msgspec.json.encode(event.data).decode()
    return Text.assemble(
        (f"{event.created_at.astimezone():%H:%M:%S} ", "dim"),
        (f"{event.number:>4} ", "dim"),
        (one_line(event.kind), "bold"),
        "  ",
        one_line(data),
    )


def _ended(event: Ended) -> Text:
    line = formatting.status(event.status)
    if event.status is not State.COMPLETED:
        line.append(f": {clean(event.error or 'no error was recorded')}", style="default")
    elif event.result is not None:
        result = msgspec.json.encode(event.result).decode()
        line.append(f": {one_line(result)}", style="default")
    return line
