"""Ground: what every command stands on: the queue, the output, the exit codes.

Comes before  every command

Data goes to stdout and remarks go to stderr, so a pipe carries nothing but data. Colours are
for terminals alone; rich sees to that, and to NO_COLOR. Text that came from a database is
never read as markup.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TypeVar

import click
import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from howdah import Queue
from howdah.client.loop import new_event_loop
from howdah.errors import (
    BadInput,
    EmbeddedUnavailable,
    HowdahError,
    JobNotFound,
    NotAllowed,
    ReadOnly,
    SchemaError,
    Unreachable,
)
from howdah.text.printable import clean, clean_json

T = TypeVar("T")

WIDE = 240  # columns when there is no terminal to fit: tables are not cut in pipes and files


class Exit(IntEnum):
    """What the exit code of every command means."""

    OK = 0
    FAILED = 1  # the job failed or was cancelled, or not everything asked for was done
    USAGE = 2  # wrong usage, or something that cannot be queued
    NOT_FOUND = 3
    DATABASE = 4  # unreachable, read-only, not allowed, or none that could be started
    SCHEMA = 5  # missing, older or newer than this code
    INTERRUPTED = 130  # Ctrl-C


def exit_for(error: HowdahError) -> Exit:
    """Say which exit code an error has."""
    match error:
        case BadInput():
            return Exit.USAGE
        case JobNotFound():
            return Exit.NOT_FOUND
        case Unreachable() | ReadOnly() | NotAllowed() | EmbeddedUnavailable():
            return Exit.DATABASE
        case SchemaError():
            return Exit.SCHEMA
        case _:
            return Exit.FAILED


def leave(code: Exit) -> None:
    """End the command with this code, unless all is well."""
    if code is not Exit.OK:
        click.get_current_context().exit(code)


def on_queue(dsn: str | None, work: Callable[[Queue], Awaitable[T]]) -> T:
    """Open the queue that `dsn` names, do the work on it, close it."""

    async def opened() -> T:
        async with Queue(dsn) as queue:
            return await work(queue)

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(opened())


def screen() -> Console:
    """Return the console for data, as wide as there is room; it reads no markup."""
    return Console(
        highlight=False,
        markup=False,
        emoji=False,
        width=None if on_terminal() else WIDE,
    )


def show(what: RenderableType) -> None:
    """Print something for people to stdout; in pipes without the blanks at the end of lines."""
    console = screen()
    if isinstance(what, str):
        what = clean(what)
    soft_wrap = isinstance(what, str | Text)
    if console.is_terminal:
        console.print(what, soft_wrap=soft_wrap)
        return
    with console.capture() as captured:
        console.print(what, soft_wrap=soft_wrap)
    for line in captured.get().removesuffix("\n").split("\n"):
        click.echo(line.rstrip())


def show_json(value: object) -> None:
    """Print one JSON document to stdout."""
    click.echo(json_text(value))


def show_json_line(value: object) -> None:
    """Print one JSON document on one line, at once: for streams."""
    click.echo(clean_json(msgspec.json.encode(value).decode()))
    sys.stdout.flush()


def json_text(value: object) -> str:
    """Lay out a JSON document; what nobody could see in it is written as an escape."""
    return clean_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def on_terminal() -> bool:
    """Tell whether a person reads stdout."""
    return sys.stdout.isatty()


def remark(text: str, label: str = "", style: str = "") -> None:
    """Tell people something on stderr that is not data."""
    console = Console(stderr=True, highlight=False)
    console.print(Text.assemble((label, style), clean(text)), soft_wrap=True)


def complain(text: str) -> None:
    """Say what is wrong, in one line that begins in red."""
    remark(text, "error: ", "bold red")


def warn(text: str) -> None:
    """Say what may be wrong, in one line that begins in yellow."""
    remark(text, "warning: ", "bold yellow")


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Make a table with these headings; those of numbers are set to the right."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        made.add_column(
            name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis"
        )
    return made
