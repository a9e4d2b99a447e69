"""Password: a name and a password, asked for on a page of its own.

Programs may send them as HTTP Basic. Wrong answers cost time, and the more there were of late, the
more; so nobody tries many: patience.py.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import logging
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from howdah.errors import BadInput
from howdah.web import refusal
from howdah.web.access.patience import Patience, address_of
from howdah.web.access.seat import Seats
from howdah.web.body import form_of
from howdah.web.desk import quoted
from howdah.web.draw import render
from howdah.web.paths import outer

_log = logging.getLogger("howdah.web")

SHORTEST = 8
LATER = "There were too many wrong answers from your address. Wait a minute."


class Password:
    """Access by name and password."""

    hint = "Enter with the name and the password that this dashboard was started with."

    def __init__(
        self, password: str, user: str = "admin", patience: Patience | None = None
    ) -> None:
        if len(password) < SHORTEST:
            raise BadInput(f"the password of a dashboard has {SHORTEST} characters at least")
        self._user = user
        self._password = password
        self._patience = patience or Patience()

    async def who(self, request: Request, seats: Seats) -> str | None:
        return seats.who(request) or self._basic(request)

    def _basic(self, request: Request) -> str | None:
        kind, _, said = request.headers.get("authorization", "").partition(" ")
        address = address_of(request)
        if kind.lower() != "basic" or self._patience.spent(address):
            return None
        try:
            user, _, password = base64.b64decode(said, validate=True).decode().partition(":")
        except ValueError:
            return None
        if self._right(user, password):
            return self._user
        self._patience.count(address)
        _refused(address)
        return None

    def _right(self, user: str, password: str) -> bool:
        """Compare both whatever the first says, in a time that tells nothing."""
        same_user = hmac.compare_digest(user.encode(), self._user.encode())
        return hmac.compare_digest(password.encode(), self._password.encode()) and same_user

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        async def ask(request: Request) -> Response:
            return render(request, "login.html", {"user": self._user, "wrong": False})

        async def enter(request: Request) -> Response:
            said = dict(await form_of(request))
            address = address_of(request)
            if self._patience.spent(address):
                return refusal.response(request, 429, LATER)
            wait = self._patience.wait(address)
            tried = self._patience.count(address)
            await asyncio.sleep(wait)
            if not self._right(said.get("user", ""), said.get("password", "")):
                _refused(address)
                return render(
                    request, "login.html", {"user": self._user, "wrong": True}, status_code=403
                )
            self._patience.forgive(address, tried)
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


def _refused(address: str) -> None:
    _log.warning("web.refused from=%s", quoted(address))
