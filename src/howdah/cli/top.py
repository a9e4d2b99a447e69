"""howdah top: the queue in a terminal, live, with keys to steer it."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.ground import Exit
from howdah.cli.options import dsn_option


@click.command()
@click.option("--read-only", is_flag=True, help="Show no keys that change something, take none.")
@dsn_option
def top(read_only: bool, dsn: str | None) -> None:
    """Watch the queue live in the terminal, and steer it.

    Types, running jobs with their progress, workers and failures; keys to cancel, requeue, pause
    and drain, each of which asks first. Press ? for all keys and q to leave.
    """
    if (refused := _refused()) is not None:
        ground.complain(refused)
        ground.leave(Exit.USAGE)
        return
    from howdah.top.app import run

    async def work(queue: Queue) -> None:
        await run(queue, read_only)

    ground.on_queue(dsn, work)


def _refused() -> str | None:
    """Say what is missing: the library that draws, or a terminal to draw on."""
    try:
        missing = importlib.util.find_spec("textual") is None
    except ValueError:  # somebody forbade the import
        missing = True
    if missing:
        return "`howdah top` needs one more package: pip install 'howdah[tui]'"
    terminal = all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr))
    if not terminal or os.environ.get("TERM") == "dumb":
        return "this is no terminal: see `howdah stats` and `howdah jobs`, with --json for programs"
    return None
