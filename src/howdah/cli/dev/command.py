"""Command: `howdah dev` runs the worker and the dashboard in one terminal."""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import click

from howdah import Queue
from howdah.cli import output
from howdah.cli.dev.reload import ReloadingWorker
from howdah.cli.log import log_level_option, log_to_stderr
from howdah.cli.options import dsn_option, port_option
from howdah.cli.web import MISSING_EXTRA
from howdah.client.loop import new_event_loop
from howdah.errors import BadInput

HOST = "127.0.0.1"


@click.command()
@click.argument("target", metavar="MODULE:QUEUE")
@port_option
@click.option(
    "--concurrency",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=10,
    show_default=True,
    help="How many jobs run at once.",
)
@log_level_option
@dsn_option
def dev(target: str, port: int, concurrency: int, log_level: str, dsn: str | None) -> None:
    """Run a worker and the dashboard while you develop.

    Restarts the worker whenever a .py file in this folder or below changes. Uses the embedded
    PostgreSQL, or the database of --dsn:

    \b
        howdah dev app:queue

    Prints a line for each job that ends, with the traceback if it failed. If your module cannot be
    imported, prints the error and waits for the next change. Ctrl-C stops everything.
    """  # noqa: D301 - \b keeps click from rewrapping
    log_to_stderr(log_level, as_json=False)
    try:
        from howdah.web.serve import bind
    except ModuleNotFoundError:
        raise BadInput(MISSING_EXTRA) from None
    queue = Queue(dsn)
    options = ("--concurrency", str(concurrency), "--log-level", log_level, "--log-jobs")
    reload = ReloadingWorker(
        target,
        queue.store.shown_dsn,
        dsn=dsn,
        options=options,
        folder=Path.cwd(),
        show=lambda message: output.note(message, "dev: ", "bold"),
    )
    with bind(HOST, port) as listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_dev(queue, reload, listener))


async def _dev(queue: Queue, reload: ReloadingWorker, listener: socket.socket) -> None:
    """Serve the dashboard and keep the worker running, until a signal arrives."""
    from howdah.web import OneTimeLink, dashboard
    from howdah.web.serve import Server, link

    access = OneTimeLink()
    server = Server(dashboard(queue, access=access, hosts=("localhost", HOST)))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.handle_exit, number, None)
    async with queue:
        async with queue.store.acquire():
            pass  # a missing schema is reported before anything is started
        output.note(f"howdah dev on {queue.store.shown_dsn}")
        output.note(f"  {link(listener, access)}")
        output.note("  This link to the dashboard works once. Ctrl-C stops everything.")
        working = asyncio.create_task(reload.run(), name="howdah-dev-reload")
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="howdah-dev-web")
        try:
            await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            working.cancel()
            results = await asyncio.gather(working, serving, return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                raise result
