"""howdah dev: everything in one terminal while you write.

Comes after  reload.py, and howdah/web/serve.py, which serves the dashboard
"""

from __future__ import annotations

import asyncio
import signal
import socket
from pathlib import Path

import click

from howdah import Queue
from howdah.cli import ground
from howdah.cli.dev.reload import Reload
from howdah.cli.log import log_level_option, log_to_stderr
from howdah.cli.options import dsn_option, port_option
from howdah.cli.web import MISSING
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
    help="Jobs at once.",
)
@log_level_option
@dsn_option
def dev(target: str, port: int, concurrency: int, log_level: str, dsn: str | None) -> None:
    """Work and watch while you write.

    Runs a worker that starts again whenever a .py file below this folder changes, and the
    dashboard, on the embedded PostgreSQL or on --dsn:

    \b
        howdah dev app:queue

    Every job that ends is told in a line, one that fails with its traceback. A mistake in your
    module is shown, and the next change is waited for. Ctrl-C ends it all.
    """  # noqa: D301 - \b keeps click from rewrapping
    log_to_stderr(log_level, as_json=False)
    try:
        from howdah.web.serve import bind
    except ModuleNotFoundError:
        raise BadInput(MISSING) from None
    queue = Queue(dsn)
    options = ("--concurrency", str(concurrency), "--log-level", log_level, "--log-jobs")
    reload = Reload(
        target,
        queue.store.shown_dsn,
        dsn=dsn,
        options=options,
        folder=Path.cwd(),
        say=lambda said: ground.remark(said, "dev: ", "bold"),
    )
    with bind(HOST, port) as door, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_dev(queue, reload, door))


async def _dev(queue: Queue, reload: Reload, door: socket.socket) -> None:
    """Serve the dashboard and keep the worker at work, until told to stop."""
    from howdah.web import OneTimeLink, dashboard
    from howdah.web.serve import Server, link

    access = OneTimeLink()
    server = Server(dashboard(queue, access=access, hosts=("localhost", HOST)))
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.handle_exit, number, None)
    async with queue:
        async with queue.store.acquire():
            pass  # a schema that is missing is told before anything is started
        ground.remark(f"howdah dev on {queue.store.shown_dsn}")
        ground.remark(f"  {link(door, access)}")
        ground.remark("  This link to the dashboard works once. Ctrl-C ends everything.")
        working = asyncio.create_task(reload.run(), name="howdah-dev-reload")
        serving = asyncio.create_task(server.serve(sockets=[door]), name="howdah-dev-web")
        try:
            await asyncio.wait({working, serving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.should_exit = True
            working.cancel()
            found = await asyncio.gather(working, serving, return_exceptions=True)
        for one in found:
            if isinstance(one, Exception):
                raise one
