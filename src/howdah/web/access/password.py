"""Password: a user name and a password, asked for on a login page.

Programs may send them as HTTP Basic. Wrong ones are delayed: see throttle.py. The session cookie's
signature depends on `credential`, so a new password ends all sessions.
"""

from __future__ import annotations

import base64
import hmac
import logging
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from howdah.errors import BadInput
from howdah.web.access.client import address_of
from howdah.web.access.session import Sessions
from howdah.web.access.throttle import Throttle
from howdah.web.context import quoted
from howdah.web.paths import url_to
from howdah.web.render import render
from howdah.web.request_body import form_of

_log = logging.getLogger("howdah.web")

MIN_LENGTH = 8


class Password:
    """Access by user name and password."""

    hint = "Log in with the user name and the password that this dashboard was started with."

    def __init__(
        self, password: str, user: str = "admin", throttle: Throttle | None = None
    ) -> None:
        if len(password) < MIN_LENGTH:
            raise BadInput(
                f"the dashboard's password is too short: it needs at least {MIN_LENGTH} characters"
            )
        self._user = user
        self._password = password
        self._throttle = throttle or Throttle()

    @property
    def credential(self) -> str:
        """The secret that session cookies are bound to."""
        return f"{self._user}\0{self._password}"

    async def who(self, request: Request, sessions: Sessions) -> str | None:
        return sessions.who(request) or await self._basic(request)

    async def _basic(self, request: Request) -> str | None:
        kind, _, encoded = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
        except ValueError:
            return None
        return self._user if await self._check(request, user, password) else None

    async def _check(self, request: Request, user: str, password: str) -> bool:
        """Check a user name and a password, after the delay of the throttle."""
        address = address_of(request)
        async with self._throttle.attempt(address) as attempt:
            attempt.succeeded = self._matches(user, password)
        if not attempt.succeeded:
            _log.warning("web.refused from=%s", quoted(address))
        return attempt.succeeded

    def _matches(self, user: str, password: str) -> bool:
        """Compare both in constant time; never skip the second comparison."""
        same_user = hmac.compare_digest(user.encode(), self._user.encode())
        return hmac.compare_digest(password.encode(), self._password.encode()) and same_user

    def login_routes(self, sessions: Sessions) -> Sequence[BaseRoute]:
        async def show_login(request: Request) -> Response:
            return render(request, "login.html", {"user": self._user, "wrong": False})

        async def log_in(request: Request) -> Response:
            form = dict(await form_of(request))
            if not await self._check(request, form.get("user", ""), form.get("password", "")):
                return render(
                    request, "login.html", {"user": self._user, "wrong": True}, status_code=403
                )
            response = RedirectResponse(url_to(request, "/"), 303)
            sessions.start(response, request, self._user)
            return response

        async def log_out(request: Request) -> Response:
            response = RedirectResponse(url_to(request, "/login"), 303)
            sessions.end(response, request)
            return response

        return [
            Route("/login", show_login, methods=["GET"]),
            Route("/login", log_in, methods=["POST"]),
            Route("/logout", log_out, methods=["POST"]),
        ]
