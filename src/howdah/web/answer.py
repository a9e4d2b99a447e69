"""Answer: what every answer carries, also one that says no, and the answer to a mistake of ours.

Comes before  gate.py, so nothing that is sent goes around it

No traceback ever reaches a page: it is in the log, and the page says so.
"""

from __future__ import annotations

import logging

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from howdah.web import refusal
from howdah.web.desk import quoted
from howdah.web.paths import inner_path, remembered
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
SORRY = "the dashboard made a mistake; its log tells which"


class Answers:
    """An ASGI app around everything else."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # there are none here
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope, begun = without_visitor(remembered(scope)), False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                _complete(MutableHeaders(scope=message), scope)
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except ClientDisconnect:
            return  # nobody is left to answer
        except Exception:
            _log.exception("web.broken path=%s", quoted(scope["path"]))
            if begun:
                raise  # half an answer cannot be mended, only ended
            await _sorry(Request(scope))(scope, receive, with_headers)


def _complete(headers: MutableHeaders, scope: Scope) -> None:
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    fixed = inner_path(scope).startswith("/static/")
    headers.setdefault("Cache-Control", "no-cache" if fixed else "no-store")


def _sorry(request: Request) -> Response:
    try:
        return refusal.response(request, 500, SORRY)
    except Exception:  # it was drawing a page that went wrong
        return PlainTextResponse(SORRY, 500)
