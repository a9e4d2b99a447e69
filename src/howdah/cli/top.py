"""howdah top: show the queue live in a terminal."""

from __future__ import annotations

import importlib.util
import os
import sys

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.cli.options import dsn_option
from howdah.cli.run_on_queue import run_on_queue


@click.command()
@click.option("--read-only", is_flag=True, help="Disable the keys that change something.")
@dsn_option
def top(read_only: bool, dsn: str | None) -> None:
    """Show the queue live in the terminal, with keys to change it.

    Shows types, running jobs with their progress, workers and failures. Keys cancel, requeue,
    pause and drain; each asks first. Press ? for all keys and q to quit.
    """
    if (reason := _cannot_run()) is not None:
        output.error(reason)
        exit_with(ExitCode.USAGE)
        return
    from howdah.top.app import run

    async def work(queue: Queue) -> None:
        await run(queue, read_only)

    run_on_queue(dsn, work)


def _cannot_run() -> str | None:
    """Return what is missing: the library, or a terminal; None if nothing is."""
    try:
        missing = importlib.util.find_spec("textual") is None
    except ValueError:  # the import is blocked
        missing = True
    if missing:
        return "`howdah top` needs one more package: pip install 'howdah[tui]'"
    terminal = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    if not terminal or os.environ.get("TERM") == "dumb":
        return (
            "`howdah top` needs a terminal: use `howdah stats` or `howdah jobs`, "
            "with --json in programs"
        )
    return None
