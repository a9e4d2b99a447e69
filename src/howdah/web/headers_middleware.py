"""Headers middleware: security headers on every response, and the answer to a crash.

It is the outermost middleware, so no response goes around it. A traceback is never sent; it is in
the log.
"""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from howdah.web import errors
from howdah.web.context import quoted
from howdah.web.paths import inner_path, with_root
from howdah.web.visitor import without_visitor

_log = logging.getLogger("howdah.web")

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
CRASHED = "the dashboard has an error: its log has the traceback"


class HeadersMiddleware:
    """ASGI middleware around everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # not supported
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope, started = without_visitor(with_root(scope)), False

        async def with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _add_headers(MutableHeaders(scope=message), scope)
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except ClientDisconnect:
            return
        except Exception:
            _log.exception("web.broken path=%s", quoted(scope["path"]))
            if started:
                raise  # the headers are sent: only the server can end this response
            await _crash_response(Request(scope))(scope, receive, with_headers)


def _add_headers(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    static = inner_path(scope).startswith("/static/")
    headers.setdefault("Cache-Control", "no-cache" if static else "no-store")


def _crash_response(request: Request) -> Response:
    try:
        return errors.response(request, 500, CRASHED)
    except Exception:  # rendering the error page failed too
        return PlainTextResponse(CRASHED, 500)
