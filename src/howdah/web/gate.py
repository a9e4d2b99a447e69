"""Gate: nobody gets in unknown, and no foreign page acts through somebody who is in.

Comes after   answer.py
Comes before  every page and every call of the API, but for the doors of the access and the probes

An unsafe request must come from our own origin, and must carry the pledge that only a page of ours
can know. A program that names itself with a bearer token carries nothing that a browser would send
by itself, so it needs neither. In read-only mode nothing unsafe passes at all.
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
from howdah.web import refusal
from howdah.web.access import Access, Seats
from howdah.web.access.client import Proxies, address_of, remember_client
from howdah.web.access.throttle import Throttle
from howdah.web.body import body_of, fields
from howdah.web.desk import quoted
from howdah.web.visitor import Visitor, admit

_log = logging.getLogger("howdah.web")

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PLEDGE = "pledge"  # the field of a form
PLEDGE_HEADER = "x-howdah-pledge"
PROGRAM = "token"  # who a bearer token is, in the audit line
SHORTEST = 32  # characters of a token: 128 bits, if it was drawn as hex digits
_HOST = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\])(:[0-9]{1,5})?", re.ASCII)


class Gate:
    """An ASGI app around the dashboard."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        access: Access,
        seats: Seats,
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
        self._seats = seats
        self._read_only = read_only
        self._token = token
        self._hosts = [host.lower() for host in hosts]
        self._public = public
        self._probes = probes  # a prober calls us by whatever address it found us at
        self._proxies = proxies
        self._throttle = throttle  # of wrong tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            raise RuntimeError(f"the dashboard does not speak {scope['type']}")
        request = Request(scope, receive)
        remember_client(scope, self._proxies)
        if not self._is_called_right(request) and not _matches(self._probes, scope):
            refused = "this dashboard does not go by the name in the Host header"
            await PlainTextResponse(refused, 400)(scope, receive, send)
            return
        try:
            receive = await self._let_in(request, receive)
        except HTTPException as refused:
            response = await refusal.on_http_error(request, refused)
            await response(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_called_right(self, request: Request) -> bool:
        """Say whether the host is one of ours: a foreign name can be made to lead to this machine.

        Such a page would be of our own origin to the browser.
        """
        said = request.headers.get("host")
        if said is None:
            return "*" in self._hosts
        found = _HOST.fullmatch(said)
        if found is None:
            return False
        name = found[1].lower()
        return any(
            one in ("*", name) or (one.startswith("*.") and name.endswith(one[1:]))
            for one in self._hosts
        )

    async def _let_in(self, request: Request, receive: Receive) -> Receive:
        if self._is_public(request.scope):
            self._same_origin(request)
            return receive
        program = self._is_program(request)
        who = PROGRAM if program else await self._access.who(request, self._seats)
        if who is None:
            await self._slow_down(request)
            raise HTTPException(401, self._access.hint)
        by_cookie = not program and self._seats.who(request) is not None
        stays = (lambda: self._seats.who(request) is not None) if by_cookie else _always
        admit(request.scope, Visitor(who, self._seats.pledge(who), stays))
        if request.method in SAFE:
            return receive
        if self._read_only:
            raise HTTPException(403, "this dashboard is read-only")
        if program:
            return receive
        self._same_origin(request)
        return await self._pledged(request, who)

    def _is_public(self, scope: Scope) -> bool:
        """Say whether a public route answers this: the routes match it here as they will there.

        They are the first of all routes, so no other can take what they match.
        """
        return _matches(self._public, scope)

    def _is_program(self, request: Request) -> bool:
        said = _bearer(request)
        return (
            self._token is not None
            and said is not None
            and hmac.compare_digest(said.encode(), self._token.encode())
        )

    async def _slow_down(self, request: Request) -> None:
        """Let a wrong token wait for its answer; the right one is too long to be guessed at all."""
        if self._token is None or not _bearer(request):
            return
        address = address_of(request)
        _log.warning("web.refused from=%s", quoted(address))
        async with self._throttle.attempt(address):
            pass

    def _same_origin(self, request: Request) -> None:
        """Refuse what another site's page sends; a browser says where it comes from.

        What it says in Sec-Fetch-Site holds also behind a proxy that changes the Host header.
        """
        if request.method in SAFE:
            return
        site = request.headers.get("sec-fetch-site")
        origin = request.headers.get("origin")
        ours = site in ("same-origin", "none") if site is not None else _leads_here(request, origin)
        if not ours:
            raise HTTPException(403, "this request came from another site")

    async def _pledged(self, request: Request, who: str) -> Receive:
        """Refuse what does not carry the pledge; hand the body on as if nobody had read it."""
        body = await body_of(request)
        word = request.headers.get(PLEDGE_HEADER)
        if word is None:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            said = fields(body) if kind == "application/x-www-form-urlencoded" else []
            word = next((value for name, value in said if name == PLEDGE), "")
        if not self._seats.kept(who, word):
            raise HTTPException(403, "the page was too old to act: load it again, then repeat it")
        unread: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        receive = request.receive

        async def again() -> Message:
            return unread.pop() if unread else await receive()

        return again


def _matches(routes: Sequence[BaseRoute], scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in routes)


def _always() -> bool:
    return True


def _bearer(request: Request) -> str | None:
    kind, _, said = request.headers.get("authorization", "").partition(" ")
    return said.strip() if kind.lower() == "bearer" else None


def _leads_here(request: Request, origin: str | None) -> bool:
    if origin is None:
        return True  # not a browser, or none that says; the pledge is still asked for
    try:
        return urlsplit(origin).netloc == request.headers.get("host")
    except ValueError:
        return False


def checked_token(token: str | None) -> str | None:
    """Return the token that lets programs in; an empty one is none, a short one is refused."""
    if not token:
        return None
    if len(token) < SHORTEST:
        raise BadInput(
            f"a token for programs has {SHORTEST} characters at least: "
            "`openssl rand -hex 32` makes one"
        )
    return token
