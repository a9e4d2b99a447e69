"""Command: `howdah demo`, from an empty folder to a summary and back to nothing."""

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

from howdah.cli import ground
from howdah.cli.demo.crew import Crew
from howdah.cli.demo.play import Played, drafts, play, private_queue
from howdah.cli.demo.promises import Promise, promises
from howdah.cli.demo.screen import screen_for
from howdah.cli.ground import Exit
from howdah.cli.stats import counts_table

NEXT = """\
Your turn. Save this as app.py, and use two terminals:

    from howdah import Queue
    queue = Queue()

    @queue.job
    async def greet(name: str) -> str:
        return f"hello {{name}}"

    $ {howdah} {work} app:queue
    $ {howdah} enqueue greet name=world --wait"""


@click.command()
def demo() -> None:
    """See it all in half a minute, on a PostgreSQL of its own.

    Jobs at three priorities with live progress; a retry that succeeds, a job that fails for
    good, one that is cancelled; a worker killed with -9 whose jobs another one finishes. Runs
    in a temporary folder, leaves nothing behind and never touches a queue of yours. Everything
    shown is read back from the queue; the exit code says whether it came out as promised.
    """
    console = ground.screen()
    console.print(
        Text("Starting a private PostgreSQL in a temporary folder, and two workers.", style="dim")
    )
    try:
        played, held = asyncio.run(_demo(console))
    except asyncio.CancelledError:  # told to go, and everything is cleared away
        raise KeyboardInterrupt from None
    _summary(console, played, held)
    ground.leave(Exit.OK if all(one.held for one in held) else Exit.FAILED)


async def _demo(console: Console) -> tuple[Played, list[Promise]]:
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    screen = screen_for(console)
    async with private_queue() as (queue, home, dsn):
        with Crew(home, dsn) as crew, screen.open():
            played = await play(queue, crew, screen.tell, screen.see)
        return played, promises(played, len(drafts(queue)))


def _summary(console: Console, played: Played, held: list[Promise]) -> None:
    console.print()
    console.print(counts_table(played.counts))
    console.print()
    for one in held:
        mark = ("✓ ", "green") if one.held else ("✗ ", "bold red")
        console.print(Text.assemble(mark, one.text))
    console.print()
    work = "dev" if find_spec("uvicorn") else "worker"  # with the dashboard, where it is installed
    console.print(NEXT.format(howdah=_program(), work=work), soft_wrap=True)


def _program() -> str:
    """Say how to call this program here: in a fresh clone it is not on the path."""
    beside = Path(sys.executable).with_name("howdah")
    if shutil.which("howdah") is not None:
        return "howdah"
    return os.path.relpath(beside) if beside.exists() else "python -m howdah"
