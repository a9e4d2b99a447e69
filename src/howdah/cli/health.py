"""Health: answers HTTP probes of a worker, for Kubernetes and the like.

GET /healthz   200 while the worker's event loop responds; 503 if it was blocked for `stuck_after`
GET /readyz    200 while beats reach the database; 503 before the first beat, after `silent_after`
               without one, and when the worker stops

The server runs in a thread of its own, so a handler that blocks the event loop for a minute does
not get the process killed. An unreachable database does not either: a restart would not help.
No credential is needed: an answer is one of a few fixed texts. The size and the time of a request
are limited, and the oldest connection is closed if there are too many.
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

MAX_HEAD = 8 * 1024  # bytes of a request, which has no body
TIMEOUT = 5.0  # seconds for a request and its response
MAX_CONNECTIONS = 64
CHECK_EVERY = 1.0  # seconds between two checks whether the event loop responds


@asynccontextmanager
async def serve_probes(
    worker: Worker, host: str, port: int | None, *, silent_after: timedelta, stuck_after: timedelta
) -> AsyncGenerator[None]:
    """Answer probes while the worker runs; without a port, do nothing."""
    if port is None:
        yield
        return
    server = _Server(worker, silent_after.total_seconds(), stuck_after.total_seconds())
    server.start(_listen(host, port))
    try:
        yield
    finally:
        server.stop()


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInput(
            f"cannot listen for probes at {host}:{port}: {error.strerror}; choose another "
            "--health-port or --health-host"
        ) from None
    _log.info("health.listening host=%s port=%d", host, listener.getsockname()[1])
    return listener


class _Server:
    """The HTTP server, in a thread of its own."""

    def __init__(self, worker: Worker, silent_after: float, stuck_after: float) -> None:
        self._worker = worker
        self._silent_after = silent_after
        self._stuck_after = stuck_after
        self._worker_loop = asyncio.get_running_loop()
        self._responded_at = time.monotonic()
        self._response_pending = False
        self._loop = asyncio.new_event_loop()
        self._stop_requested = asyncio.Event()
        self._open: dict[asyncio.StreamWriter, None] = {}  # oldest first

    def start(self, listener: socket.socket) -> None:
        run = threading.Thread(target=self._run, args=[listener], name="howdah-health", daemon=True)
        run.start()

    def stop(self) -> None:
        """Let the thread end; does not wait for it."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop_requested.set)

    def _run(self, listener: socket.socket) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(listener))

    async def _serve(self, listener: socket.socket) -> None:
        server = await asyncio.start_server(self._answer, sock=listener, limit=MAX_HEAD)
        checking = asyncio.create_task(self._check_loop())
        await self._stop_requested.wait()
        checking.cancel()
        server.close()
        for writer in self._open:
            writer.transport.abort()

    async def _check_loop(self) -> None:
        """Check that the worker's loop responds: schedule a callback, one at a time."""
        while True:
            if not self._response_pending:
                self._response_pending = True
                with suppress(RuntimeError):  # the loop is closed: the process is about to end
                    self._worker_loop.call_soon_threadsafe(self._responded)
            await asyncio.sleep(CHECK_EVERY)

    def _responded(self) -> None:
        self._responded_at, self._response_pending = time.monotonic(), False

    def _problem(self, path: str) -> str | None:
        """Return the problem as a fixed text; None if there is none."""
        if path == "/healthz":
            stuck = time.monotonic() - self._responded_at > self._stuck_after
            return "the event loop is blocked" if stuck else None
        beaten_at = self._worker.beaten_at
        if self._worker.leaving:
            return "the worker is stopping"
        if beaten_at is None:
            return "the worker has not started"
        silent = time.monotonic() - beaten_at > self._silent_after
        return "no beat reaches the database" if silent else None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._open) >= MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        self._open[writer] = None
        try:
            async with asyncio.timeout(TIMEOUT):
                status, text = self._response_to(await reader.readuntil(b"\r\n\r\n"))
                writer.write(_response(status, text))
                await writer.drain()
        except asyncio.LimitOverrunError:
            writer.write(_response("431 Request Header Fields Too Large", "too large"))
        except (TimeoutError, OSError, EOFError):
            pass  # the client is slow or has disconnected
        finally:
            self._open.pop(writer, None)
            writer.close()

    def _response_to(self, head: bytes) -> tuple[str, str]:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        target, _, version = rest.partition(b" ")
        path = target.partition(b"?")[0].decode("latin-1")
        if not version.startswith(b"HTTP/1."):
            return "400 Bad Request", "not HTTP"
        if method != b"GET":
            return "405 Method Not Allowed", "GET only"
        if path not in ("/healthz", "/readyz"):
            return "404 Not Found", "ask /healthz or /readyz"
        problem = self._problem(path)
        return ("200 OK", "ok") if problem is None else ("503 Service Unavailable", problem)


def _response(status: str, text: str) -> bytes:
    body = f"{text}\n"
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        f"Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}"
    ).encode()
