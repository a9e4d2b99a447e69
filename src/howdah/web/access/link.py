"""OneTimeLink: a link that works once, for whoever started the dashboard.

Whoever can read the terminal gets in; the cookie that the link gives stays in that browser. A link
that was used, or that somebody guessed at, opens nothing. It leads on whoever is in already.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from howdah.web import refusal
from howdah.web.access.seat import Seats
from howdah.web.paths import outer

ANOTHER = "It works once: stop the dashboard, start it again and open the link it prints then."


class OneTimeLink:
    """Access by a link that is printed once."""

    hint = "Open the link that `howdah web` printed. It works once; for another, start it again."

    def __init__(self, who: str = "local") -> None:
        self._who = who
        self._token = secrets.token_urlsafe(24)
        self._used = False

    @property
    def path(self) -> str:
        """The path of the link, as long as nobody has used it."""
        return f"/enter?token={self._token}"

    async def who(self, request: Request, seats: Seats) -> str | None:
        return seats.who(request)

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        async def enter(request: Request) -> Response:
            said = request.query_params.get("token", "")
            right = secrets.compare_digest(said.encode(), self._token.encode())
            if (self._used or not right) and seats.who(request) is not None:
                return RedirectResponse(outer(request, "/"), 303)
            if self._used and right:
                return refusal.response(
                    request, 410, f"This link was used already, in another browser. {ANOTHER}"
                )
            if self._used or not right:
                return refusal.response(
                    request, 403, f"This link does not open anything. {self.hint}"
                )
            if request.method != "GET":  # a look at the link does not use it up
                return Response()
            self._used = True
            response = RedirectResponse(outer(request, "/"), 303)
            seats.give(response, request, self._who)
            return response

        return [Route("/enter", enter, methods=["GET"])]
