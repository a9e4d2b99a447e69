"""Auth middleware: authenticate every request, and protect against CSRF and DNS rebinding.

Public routes (login, static files, probes) pass without authentication. Every other request needs
an identity from `access`, or the bearer token. An unsafe request (POST) must also come from the
same origin and carry the CSRF token of its user. A request with the bearer token needs neither,
because a browser never sends it on its own. In read-only mode every unsafe request is refused.
"""

from __future__ import annotations

import hmac
import logging
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from howdah.errors import BadInput
from howdah.web import errors
from howdah.web.access import Access, Sessions
from howdah.web.access.client import Proxies, address_of, remember_client
from howdah.web.access.throttle import Throttle
from howdah.web.context import quoted
from howdah.web.request_body import body_of, fields
from howdah.web.visitor import Visitor, admit

_log = logging.getLogger("howdah.web")

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
CSRF_FIELD = "csrf_token"  # the field of a form
CSRF_HEADER = "x-howdah-csrf-token"
TOKEN_USER = "token"  # noqa: S105 - the name of such a program in the audit line
MIN_TOKEN_LENGTH = 32  # characters: 128 bits as hex digits
_HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?", re.ASCII)


class AuthMiddleware:
    """ASGI middleware around the dashboard."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        sessions: Sessions,
        read_only: bool,
        token: str | None,
        hosts: Sequence[str],
        public: Sequence[BaseRoute],
        probes: Sequence[BaseRoute],
        proxies: Proxies,
        throttle: Throttle,
    ) -> None:
        self._app = app
        self._access = access
        self._sessions = sessions
        self._read_only = read_only
        self._token = token
        self._hosts = [host.lower() for host in hosts]
        self._public = public
        self._probes = probes  # any Host header is accepted for these
        self._proxies = proxies
        self._throttle = throttle  # of wrong tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the dashboard does not support {scope['type']} connections")
        request = Request(scope, receive)
        remember_client(scope, self._proxies)
        if not self._is_known_host(request) and not _matches(self._probes, scope):
            sentence = "this Host header is not allowed: allow it with --allow-host or hosts=…"
            await PlainTextResponse(sentence, 400)(scope, receive, send)
            return
        try:
            receive = await self._authenticate(request, receive)
        except HTTPException as error:
            response = await errors.on_http_error(request, error)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_known_host(self, request: Request) -> bool:
        """Return whether the Host header is allowed.

        This stops DNS rebinding: a foreign page whose name is made to point at this machine has
        the same origin as the dashboard.
        """
        host = request.headers.get("host")
        if host is None:
            return "*" in self._hosts
        match = _HOST.fullmatch(host)
        if match is None:
            return False
        name = match[1].lower()
        return any(
            allowed in ("*", name) or (allowed.startswith("*.") and name.endswith(allowed[1:]))
            for allowed in self._hosts
        )

    async def _authenticate(self, request: Request, receive: Receive) -> Receive:
        if self._is_public(request.scope):
            self._check_origin(request)
            return receive
        by_token = self._has_token(request)
        who = TOKEN_USER if by_token else await self._access.who(request, self._sessions)
        if who is None:
            await self._delay_wrong_token(request)
            raise HTTPException(401, self._access.hint)
        by_cookie = not by_token and self._sessions.who(request) is not None
        still_valid = (lambda: self._sessions.who(request) is not None) if by_cookie else _always
        admit(request.scope, Visitor(who, self._sessions.csrf_token(who), still_valid))
        if request.method in SAFE:
            return receive
        if self._read_only:
            raise HTTPException(403, "this dashboard is read-only: nothing can be changed here")
        if by_token:
            return receive
        self._check_origin(request)
        return await self._check_csrf_token(request, who)

    def _is_public(self, scope: Scope) -> bool:
        """Return whether a public route answers this request.

        The router uses the same `matches`, and public routes come first, so both agree.
        """
        return _matches(self._public, scope)

    def _has_token(self, request: Request) -> bool:
        token = _bearer(request)
        return (
            self._token is not None
            and token is not None
            and hmac.compare_digest(token.encode(), self._token.encode())
        )

    async def _delay_wrong_token(self, request: Request) -> None:
        """Delay the answer to a wrong token; the right one is never delayed."""
        if self._token is None or not _bearer(request):
            return
        address = address_of(request)
        _log.warning("web.refused from=%s", quoted(address))
        async with self._throttle.attempt(address):
            pass

    def _check_origin(self, request: Request) -> None:
        """Refuse an unsafe request that a page of another site sends.

        Sec-Fetch-Site is right even behind a proxy that changes the Host header.
        """
        if request.method in SAFE:
            return
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        allowed = (
            site in ("same-origin", "none") if site is not None else _is_own_origin(request, origin)
        )
        if not allowed:
            raise HTTPException(
                403, "this request came from another site: open the dashboard and act there"
            )

    async def _check_csrf_token(self, request: Request, who: str) -> Receive:
        """Refuse a request without the CSRF token; returns a `receive` that replays the body."""
        body = await body_of(request)
        token = request.headers.get(CSRF_HEADER)
        if token is None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            form = fields(body) if kind == "application/x-www-form-urlencoded" else []
            token = next((value for name, value in form if name == CSRF_FIELD), "")
        if not self._sessions.csrf_token_matches(who, token):
            raise HTTPException(403, "the page is too old: load it again, then repeat the action")
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        receive = request.receive

        async def replay() -> Message:
            return unread.pop() if unread else await receive()

        return replay


def _matches(routes: Sequence[BaseRoute], scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def _always() -> bool:
    return True


def _bearer(request: Request) -> str | None:
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else None


def _is_own_origin(request: Request, origin: str | None) -> bool:
    if origin is None:
        return True  # not a browser, or an old one; the CSRF token is still required
    try:
        return urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False


def checked_token(token: str | None) -> str | None:
    """Return the token for programs; None if it is empty. A short one is refused."""
    if not token:
        return None
    if len(token) < MIN_TOKEN_LENGTH:
        raise BadInput(
            f"the token is too short: it needs at least {MIN_TOKEN_LENGTH} characters. "
            "`openssl rand -hex 32` makes one"
        )
    return token
