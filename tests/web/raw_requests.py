"""Raw requests: request paths as exact bytes, which an HTTP client would normalise."""

from __future__ import annotations

import asyncio
import zlib
from typing import Any
from urllib.parse import unquote

import msgspec
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from howdah.web.paths import with_prefix

PREFIX = "/queue"


class Answer(msgspec.Struct):
    """The response of an app."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as a browser reads it."""
        packed = self.headers.get("content-encoding") == "gzip"
        return (zlib.decompress(self.body, 31) if packed else self.body).decode()


def scope_of(
    raw: bytes, method: str = "GET", headers: dict[str, str] | None = None, **more: Any
) -> Scope:
    """Return the scope that uvicorn makes of a request line with this path."""
    path, _, query = raw.partition(b"?")
    all_headers = {"host": "localhost", **(headers or {})}
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path.decode("ascii")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in all_headers.items()],
        "client": ("127.0.0.1", 4711),
        "server": ("localhost", 80),
        **more,
    }


async def ask(
    app: ASGIApp,
    raw: bytes,
    method: str = "GET",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    **more: Any,
) -> Answer:
    """Call an app as uvicorn would after this request line."""
    answer = Answer(0, {}, b"")
    unsent: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    answered = asyncio.Event()

    async def receive() -> Message:
        if not unsent:  # the client stays until the end of the answer
            await answered.wait()
            return {"type": "http.disconnect"}
        return unsent.pop()

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            answer.status = message["status"]
            answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            answer.body += message.get("body", b"")
            if not message.get("more_body"):
                answered.set()

    await app(scope_of(raw, method, headers, **more), receive, send)
    return answer


def alone(app: ASGIApp) -> ASGIApp:
    return app


def mounted(app: ASGIApp) -> ASGIApp:
    return Starlette(routes=[Mount(PREFIX, app)])


def mounted_twice(app: ASGIApp) -> ASGIApp:
    return Starlette(routes=[Mount("/tools", Starlette(routes=[Mount("/queue", app)]))])


def prefix_kept(app: ASGIApp) -> ASGIApp:
    """Serve behind a proxy that passes the whole path to `howdah web --prefix`."""
    return with_prefix(app, PREFIX)


def prefix_cut(app: ASGIApp) -> ASGIApp:
    """Serve behind a proxy that removes the prefix, if there is one, and changes nothing else."""
    inner = with_prefix(app, PREFIX)

    async def proxy(scope: Scope, receive: Receive, send: Send) -> None:
        raw: bytes = scope["raw_path"]
        start = PREFIX.encode()
        if raw == start or raw.startswith(start + b"/"):
            raw = raw[len(start) :] or b"/"
            scope = {**scope, "raw_path": raw, "path": unquote(raw.decode("ascii"))}
        await inner(scope, receive, send)

    return proxy


def served_below(app: ASGIApp) -> ASGIApp:
    """Serve behind a server that adds its root path to every path."""

    async def server(scope: Scope, receive: Receive, send: Send) -> None:
        added = {"path": PREFIX + scope["path"], "raw_path": PREFIX.encode() + scope["raw_path"]}
        await app({**scope, **added, "root_path": PREFIX}, receive, send)

    return server


# ways to serve a dashboard, each with the prefix of its paths
DEPLOYMENTS: dict[str, tuple[Any, str]] = {
    "alone": (alone, ""),
    "mounted": (mounted, PREFIX),
    "mounted twice": (mounted_twice, "/tools/queue"),
    "prefix kept": (prefix_kept, PREFIX),
    "prefix cut": (prefix_cut, PREFIX),
    "prefix cut before": (prefix_cut, ""),
    "served below": (served_below, ""),
}
