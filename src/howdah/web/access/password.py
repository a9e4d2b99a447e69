"""Password: a name and a password, asked for on a page of its own.

Programs may send them as HTTP Basic. Wrong answers make the next ones wait: throttle.py. A session
ends with the password that it was entered with: its cookie's signature depends on `credential`.
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
from howdah.web.access.seat import Seats
from howdah.web.access.throttle import Throttle
from howdah.web.body import form_of
from howdah.web.desk import quoted
from howdah.web.draw import render
from howdah.web.paths import outer

_log = logging.getLogger("howdah.web")

SHORTEST = 8


class Password:
    """Access by name and password."""

    hint = "Enter with the name and the password that this dashboard was started with."

    def __init__(
        self, password: str, user: str = "admin", throttle: Throttle | None = None
    ) -> None:
        if len(password) < SHORTEST:
            raise BadInput(f"the password of a dashboard has {SHORTEST} characters at least")
        self._user = user
        self._password = password
        self._throttle = throttle or Throttle()

    @property
    def credential(self) -> str:
        """What a session is bound to."""
        return f"{self._user}\0{self._password}"

    async def who(self, request: Request, seats: Seats) -> str | None:
        return seats.who(request) or await self._basic(request)

    async def _basic(self, request: Request) -> str | None:
        kind, _, said = request.headers.get("authorization", "").partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(said, validate=True).decode().partition(":")
        except ValueError:
            return None
        return self._user if await self._proves(request, user, password) else None

    async def _proves(self, request: Request, user: str, password: str) -> bool:
        """Check them after the wait that they have earned."""
        address = address_of(request)
        async with self._throttle.attempt(address) as one:
            one.right = self._right(user, password)
        if not one.right:
            _log.warning("web.refused from=%s", quoted(address))
        return one.right

    def _right(self, user: str, password: str) -> bool:
        """Compare both whatever the first says, in a time that tells nothing."""
        same_user = hmac.compare_digest(user.encode(), self._user.encode())
        return hmac.compare_digest(password.encode(), self._password.encode()) and same_user

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        async def ask(request: Request) -> Response:
            return render(request, "login.html", {"user": self._user, "wrong": False})

        async def enter(request: Request) -> Response:
            said = dict(await form_of(request))
            if not await self._proves(request, said.get("user", ""), said.get("password", "")):
                return render(
                    request, "login.html", {"user": self._user, "wrong": True}, status_code=403
                )
            response = RedirectResponse(outer(request, "/"), 303)
            seats.give(response, request, self._user)
            return response

        async def leave(request: Request) -> Response:
            response = RedirectResponse(outer(request, "/login"), 303)
            seats.take(response, request)
            return response

        return [
            Route("/login", ask, methods=["GET"]),
            Route("/login", enter, methods=["POST"]),
            Route("/leave", leave, methods=["POST"]),
        ]
