"""Output: how commands print.

Data goes to stdout, messages go to stderr, so a pipe carries only data. Only terminals get
colours; rich checks that, and NO_COLOR. Text from a database is never parsed as markup.
"""

from __future__ import annotations

import sys

import click
import msgspec
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from howdah.text.printable import clean, clean_json

PIPE_WIDTH = 240  # columns without a terminal, so that tables are not cut in pipes and files


def console() -> Console:
    """Return the console of stdout, as wide as the terminal; it parses no markup."""
    return Console(
        highlight=False,
        markup=False,
        emoji=False,
        width=None if on_terminal() else PIPE_WIDTH,
    )


def show(content: RenderableType) -> None:
    """Print text for people to stdout; in pipes without spaces at the end of lines."""
    stdout = console()
    if isinstance(content, str):
        content = clean(content)
    soft_wrap = isinstance(content, str | Text)
    if stdout.is_terminal:
        stdout.print(content, soft_wrap=soft_wrap)
        return
    with stdout.capture() as captured:
        stdout.print(content, soft_wrap=soft_wrap)
    for line in captured.get().removesuffix("\n").split("\n"):
        click.echo(line.rstrip())


def show_json(value: object) -> None:
    """Print one JSON document to stdout."""
    click.echo(json_text(value))


def show_json_line(value: object) -> None:
    """Print one JSON document on one line and flush it: for streams."""
    click.echo(clean_json(msgspec.json.encode(value).decode()))
    sys.stdout.flush()


def json_text(value: object) -> str:
    """Format a JSON document; control characters are escaped."""
    return clean_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def on_terminal() -> bool:
    """Tell whether stdout is a terminal."""
    return sys.stdout.isatty()


def note(text: str, label: str = "", style: str = "") -> None:
    """Print a message for people to stderr."""
    stderr = Console(stderr=True, highlight=False)
    stderr.print(Text.assemble((label, style), clean(text)), soft_wrap=True)


def error(text: str) -> None:
    """Print an error to stderr."""
    note(text, "error: ", "bold red")


def warning(text: str) -> None:
    """Print a warning to stderr."""
    note(text, "warning: ", "bold yellow")


def table(*columns: str, right: tuple[str, ...] = ()) -> Table:
    """Make a table with these headings; the columns in `right` are aligned to the right."""
    new = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        new.add_column(
            name, justify="right" if name in right else "left", no_wrap=True, overflow="ellipsis"
        )
    return new
