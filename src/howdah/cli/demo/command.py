"""Command: `howdah demo`, from an empty temporary folder to the summary."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from howdah.cli import output
from howdah.cli.demo.checks import Check, check_result
from howdah.cli.demo.display import display_for
from howdah.cli.demo.scenario import ScenarioResult, drafts, private_queue, run_scenario
from howdah.cli.demo.workers import WorkerProcesses
from howdah.cli.exit_codes import ExitCode, exit_with
from howdah.cli.stats import counts_table

NEXT_STEPS = """\
Now try it yourself. Save this as app.py, and use two terminals:

    from howdah import Queue
    queue = Queue()

    @queue.job
    async def greet(name: str) -> str:
        return f"hello {{name}}"

    $ {howdah} {command} app:queue
    $ {howdah} enqueue greet name=world --wait"""


@click.command()
def demo() -> None:
    """See howdah work, in half a minute.

    Starts a private PostgreSQL and two workers. Shows jobs of three priorities with live
    progress, a retry that succeeds, a job that fails, a job that is cancelled, and a worker that
    is killed with -9 and whose jobs another worker finishes.

    Uses a temporary folder, removes it at the end, and never touches a queue of yours. Everything
    shown is read from the queue. Exit code 0 if everything happened as promised, else 1.
    """
    console = output.console()
    console.print(
        Text("Starting a private PostgreSQL in a temporary folder, and two workers.", style="dim")
    )
    try:
        result, checks = asyncio.run(_demo(console))
    except asyncio.CancelledError:  # by a signal, after everything was cleaned up
        raise KeyboardInterrupt from None
    _summary(console, result, checks)
    exit_with(ExitCode.OK if all(check.passed for check in checks) else ExitCode.FAILED)


async def _demo(console: Console) -> tuple[ScenarioResult, list[Check]]:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    display = display_for(console)
    async with private_queue() as (queue, home, dsn):
        with WorkerProcesses(home, dsn) as workers, display.open():
            result = await run_scenario(queue, workers, display.show_change, display.show_snapshot)
        return result, check_result(result, len(drafts(queue)))


def _summary(console: Console, result: ScenarioResult, checks: list[Check]) -> None:
    console.print()
    console.print(counts_table(result.counts, {}))
    console.print()
    for check in checks:
        mark = ("✓ ", "green") if check.passed else ("✗ ", "bold red")
        console.print(Text.assemble(mark, check.text))
    console.print()
    command = "dev" if find_spec("uvicorn") else "worker"  # dev needs the dashboard
    console.print(NEXT_STEPS.format(howdah=_program(), command=command), soft_wrap=True)


def _program() -> str:
    """Return how to call this program here: in a fresh clone it is not on PATH."""
    program = Path(sys.executable).with_name("howdah")
    if shutil.which("howdah") is not None:
        return "howdah"
    return os.path.relpath(program) if program.exists() else "python -m howdah"
