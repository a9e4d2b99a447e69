"""Serve: the dashboard as a process of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

import uvicorn

from howdah.client import Queue
from howdah.errors import Unreachable
from howdah.loop import new_event_loop
from howdah.web.access import Access, OneTimeLink
from howdah.web.app import dashboard


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
    say: Callable[[str], None],
) -> None:
    """Serve until Ctrl-C or SIGTERM."""
    app = dashboard(queue, access=access, read_only=read_only, redact=redact, hosts=hosts)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            root_path=prefix,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    )
    with bind(host, port) as door, asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(queue, server, door, access, say, prefix))


async def _serve(
    queue: Queue,
    server: uvicorn.Server,
    door: socket.socket,
    access: Access,
    say: Callable[[str], None],
    prefix: str,
) -> None:
    async with queue:
        say(f"howdah web of {queue.store.shown_dsn}")
        say(f"  {address(door)}{prefix}{access.path if isinstance(access, OneTimeLink) else '/'}")
        say(f"  {access.hint} Ctrl-C ends it.")
        await server.serve(sockets=[door])


def bind(host: str, port: int) -> socket.socket:
    """Take the port before anything else is done, so that a taken one is told at once."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    door = socket.socket(family, socket.SOCK_STREAM)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        door.bind((host, port))
    except OSError as error:
        door.close()
        raise Unreachable(
            f"cannot listen at {host}:{port}: {error.strerror}; --port takes another"
        ) from None
    return door


def address(door: socket.socket) -> str:
    """Return where the server can be opened in a browser of this machine."""
    host, port = door.getsockname()[:2]
    shown = "localhost" if host in ("0.0.0.0", "::") else str(host)  # noqa: S104
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
