"""Serve: the dashboard as a process.

The first SIGTERM or Ctrl-C ends the open streams, then the process, with exit code 0. A second one
ends it at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from howdah.client.loop import new_event_loop
from howdah.client.queue import Queue
from howdah.errors import BadInput
from howdah.web.access import Access, OneTimeLink
from howdah.web.app import dashboard
from howdah.web.paths import with_prefix


def serve(
    queue: Queue,
    access: Access,
    *,
    host: str,
    port: int,
    hosts: Sequence[str],
    read_only: bool,
    redact: Sequence[str],
    prefix: str,
    proxies: Sequence[str],
    say: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    app: ASGIApp = dashboard(
        queue, access=access, read_only=read_only, redact=redact, hosts=hosts, proxies=proxies
    )
    server = Server(with_prefix(app, prefix) if prefix else app)

    async def run(listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.handle_exit, number, None)
        async with queue:
            say(f"howdah web of {queue.store.shown_dsn}")
            say(f"  {link(listener, access, prefix)}")
            say(f"  {access.hint} Ctrl-C stops the dashboard.")
            await server.serve(sockets=[listener])

    with bind(host, port) as listener, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(listener))


class Server(uvicorn.Server):
    """A server that leaves signals to its caller."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # access/client.py reads them, from trusted proxies only
                timeout_graceful_shutdown=2,
            )
        )

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """Bind the port first, so that a port in use is reported at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with IPPROTO_TCP asyncio sets TCP_NODELAY, so small responses are sent at once
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # on Windows it would let two processes share a port
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise BadInput(
            f"cannot listen at {host}:{port}: {error.strerror}. Choose another with --port"
        ) from None
    return listener


def link(listener: socket.socket, access: Access, prefix: str = "") -> str:
    """Return the URL to open in a browser on this machine."""
    return f"{address(listener)}{prefix}{access.path if isinstance(access, OneTimeLink) else '/'}"


def address(listener: socket.socket) -> str:
    """Return the URL of the server for this machine."""
    host, port = listener.getsockname()[:2]
    shown = "localhost" if host in ("0.0.0.0", "::") else str(host)  # noqa: S104
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
