"""Health: whether a worker lives and works, over HTTP, for Kubernetes and its like.

Comes after  worker.py, which runs the worker

GET /healthz   200 while the worker's event loop turns; 503 when it is blocked for `stuck_after`
GET /readyz    200 while beats reach the database; 503 before the first, after `silent_after`
               without one, and once the worker has been told to stop

The server has a thread of its own. So a handler that blocks the event loop for a minute does not
get the process killed, and a database that is away does not either: a restart mends neither.
Everybody who reaches the port may ask: they learn nothing but a few fixed words. What a client
sends is bounded in bytes and in time, and the oldest connection makes room for one too many.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta

from howdah import Worker
from howdah.errors import BadInput
from howdah.safe_logging import log_named

_log = log_named("howdah.health")

LONGEST_HEAD = 8 * 1024  # bytes of a request, without a body
PATIENCE = 5.0  # seconds for a request to come and its answer to leave
MOST = 64  # connections at once
TURN = 1.0  # seconds between two looks whether the loop turns


@asynccontextmanager
async def answering(
    worker: Worker, host: str, port: int | None, *, silent_after: timedelta, stuck_after: timedelta
) -> AsyncGenerator[None]:
    """Answer probes of a worker while it lives; without a port, nothing."""
    if port is None:
        yield
        return
    server = _Server(worker, silent_after.total_seconds(), stuck_after.total_seconds())
    server.start(_bound(host, port))
    try:
        yield
    finally:
        server.stop()


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        door = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInput(
            f"cannot answer probes at {host}:{port}: {error.strerror}; --health-port takes another"
        ) from None
    _log.info("health.listening host=%s port=%d", host, door.getsockname()[1])
    return door


class _Server:
    """Answers in a thread of its own."""

    def __init__(self, worker: Worker, silent_after: float, stuck_after: float) -> None:
        self._worker = worker
        self._silent_after = silent_after
        self._stuck_after = stuck_after
        self._worker_loop = asyncio.get_running_loop()
        self._turned_at = time.monotonic()
        self._turn_asked = False
        self._loop = asyncio.new_event_loop()
        self._told_to_stop = asyncio.Event()
        self._open: dict[asyncio.StreamWriter, None] = {}  # the oldest first

    def start(self, door: socket.socket) -> None:
        run = threading.Thread(target=self._run, args=[door], name="howdah-health", daemon=True)
        run.start()

    def stop(self) -> None:
        """Let the thread end; nobody waits for it."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._told_to_stop.set)

    def _run(self, door: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(door))

    async def _serve(self, door: socket.socket) -> None:
        server = await asyncio.start_server(self._answer, sock=door, limit=LONGEST_HEAD)
        watch = asyncio.create_task(self._watch())
        await self._told_to_stop.wait()
        watch.cancel()
        server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _watch(self) -> None:
        """See whether the worker's loop turns: ask it for a sign, one at a time."""
        while True:
            if not self._turn_asked:
                self._turn_asked = True
                with suppress(RuntimeError):  # it is closed: the process is about to end
                    self._worker_loop.call_soon_threadsafe(self._turned)
            await asyncio.sleep(TURN)

    def _turned(self) -> None:
        self._turned_at, self._turn_asked = time.monotonic(), False

    def _wrong(self, path: str) -> str | None:
        """Say what is wrong, in fixed words; None when nothing is."""
        if path == "/healthz":
            stuck = time.monotonic() - self._turned_at > self._stuck_after
            return "the event loop is blocked" if stuck else None
        beaten_at = self._worker.beaten_at
        if self._worker.leaving:
            return "the worker is stopping"
        if beaten_at is None:
            return "the worker has not started"
        silent = time.monotonic() - beaten_at > self._silent_after
        return "no beat reaches the database" if silent else None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MOST:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(PATIENCE):
                status, said = self._said(await reader.readuntil(b"\r\n\r\n"))
                writer.write(_response(status, said))
                await writer.drain()
        except asyncio.LimitOverrunError:
            writer.write(_response("431 Request Header Fields Too Large", "too large"))
        except (TimeoutError, OSError, EOFError):
            pass  # a client that is slow, or gone
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _said(self, head: bytes) -> tuple[str, str]:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        target, _, version = rest.partition(b" ")
        path = target.partition(b"?")[0].decode("latin-1")
        if not version.startswith(b"HTTP/1."):
            return "400 Bad Request", "not HTTP"
        if method != b"GET":
            return "405 Method Not Allowed", "GET only"
        if path not in ("/healthz", "/readyz"):
            return "404 Not Found", "ask /healthz or /readyz"
        wrong = self._wrong(path)
        return ("200 OK", "ok") if wrong is None else ("503 Service Unavailable", wrong)


def _response(status: str, said: str) -> bytes:
    body = f"{said}\n"
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}"
    ).encode()
