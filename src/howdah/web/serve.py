"""Serve: the dashboard as a process of its own.

The first SIGTERM or Ctrl-C ends the open streams, then the process, with exit code 0; a second one
does not wait for anybody.
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
from howdah.web.paths import below


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
    server = Server(below(app, prefix) if prefix else app)

    async def run(door: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, server.handle_exit, number, None)
        async with queue:
            say(f"howdah web of {queue.store.shown_dsn}")
            say(f"  {link(door, access, prefix)}")
            say(f"  {access.hint} Ctrl-C ends it.")
            await server.serve(sockets=[door])

    with bind(host, port) as door, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run(door))


class Server(uvicorn.Server):
    """A server that leaves the signals to whoever runs it."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,  # access/client.py reads them, from named proxies alone
                timeout_graceful_shutdown=2,
            )
        )

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def bind(host: str, port: int) -> socket.socket:
    """Take the port before anything else is done, so that a taken one is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once only through a socket that says that it is TCP
    door = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    if os.name == "posix":  # elsewhere it would let two listen at one port
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
        door.listen()
    except OSError as error:
        door.close()
        raise BadInput(
            f"cannot listen at {host}:{port}: {error.strerror}; --port takes another"
        ) from None
    return door


def link(door: socket.socket, access: Access, prefix: str = "") -> str:
    """Return what to open in a browser of this machine."""
    return f"{address(door)}{prefix}{access.path if isinstance(access, OneTimeLink) else '/'}"


def address(door: socket.socket) -> str:
    """Return where the server can be opened in a browser of this machine."""
    host, port = door.getsockname()[:2]
    shown = "localhost" if host in ("0.0.0.0", "::") else str(host)  # noqa: S104
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
