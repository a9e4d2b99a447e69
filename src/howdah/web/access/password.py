"""Password: a name and a password, asked for on a page of its own.

Programs may send them as HTTP Basic. Wrong answers cost time, and the more there were of late, the
more; so nobody tries many.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import time
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from howdah.errors import BadInput
from howdah.web.access.seat import Seats
from howdah.web.body import form_of
from howdah.web.draw import render

SHORTEST = 8
FORGIVEN = 60.0  # seconds after which a wrong answer no longer counts
MANY = 20  # wrong answers within that time, after which a header is not even read


class Password:
    """Access by name and password."""

    hint = "Enter with the name and the password that this dashboard was started with."

    def __init__(self, password: str, user: str = "admin") -> None:
        if len(password) < SHORTEST:
            raise BadInput(f"the password of a dashboard has {SHORTEST} characters at least")
        self._user = user
        self._password = password
        self._wrong: list[float] = []

    def who(self, request: Request, seats: Seats) -> str | None:
        return seats.who(request) or self._basic(request.headers.get("authorization", ""))

    def _basic(self, header: str) -> str | None:
        kind, _, said = header.partition(" ")
        if kind.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(said, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        if len(self._recent()) >= MANY:
            return None
        if self._right(user, password):
            return user
        self._wrong.append(time.monotonic())
        return None

    def _right(self, user: str, password: str) -> bool:
        return hmac.compare_digest(user.encode(), self._user.encode()) and hmac.compare_digest(
            password.encode(), self._password.encode()
        )

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        async def ask(request: Request) -> Response:
            return render(request, "login.html", {"user": self._user, "wrong": False})

        async def enter(request: Request) -> Response:
            said = dict(await form_of(request))
            await asyncio.sleep(self._patience())
            if not self._right(said.get("user", ""), said.get("password", "")):
                self._wrong.append(time.monotonic())
                return render(
                    request, "login.html", {"user": self._user, "wrong": True}, status_code=403
                )
            response = RedirectResponse(request.scope.get("root_path", "") + "/", 303)
            seats.give(response, request, self._user)
            return response

        return [Route("/login", ask, methods=["GET"]), Route("/login", enter, methods=["POST"])]

    def _recent(self) -> list[float]:
        now = time.monotonic()
        self._wrong = [at for at in self._wrong if now - at < FORGIVEN]
        return self._wrong

    def _patience(self) -> float:
        wrong = len(self._recent())
        return min(0.1 * 2**wrong, 10.0) if wrong else 0.0
