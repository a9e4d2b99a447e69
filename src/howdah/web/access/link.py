"""OneTimeLink: a login link that works once, for the user who started the dashboard.

Whoever can read the terminal can log in. The first browser that opens the link gets the session
cookie. After that the link opens nothing; it only redirects browsers that are logged in.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from howdah.web import errors
from howdah.web.access.session import Sessions
from howdah.web.paths import url_to

NEW_LINK = "To get a new link, stop the dashboard and start it again."


class OneTimeLink:
    """Access by a link that is printed at the start."""

    hint = "Open the link that `howdah web` printed. It works once; start it again for a new one."

    def __init__(self, who: str = "local") -> None:
        self._who = who
        self._token = secrets.token_urlsafe(24)
        self._used = False

    @property
    def path(self) -> str:
        """The path of the link."""
        return f"/link?token={self._token}"

    async def who(self, request: Request, sessions: Sessions) -> str | None:
        return sessions.who(request)

    def login_routes(self, sessions: Sessions) -> Sequence[BaseRoute]:
        async def log_in(request: Request) -> Response:
            token = request.query_params.get("token", "")
            valid = secrets.compare_digest(token.encode(), self._token.encode())
            if (self._used or not valid) and sessions.who(request) is not None:
                return RedirectResponse(url_to(request, "/"), 303)
            if self._used and valid:
                return errors.response(
                    request, 410, f"This link was already used in another browser. {NEW_LINK}"
                )
            if self._used or not valid:
                return errors.response(request, 403, f"This link is not valid. {self.hint}")
            if request.method != "GET":  # HEAD does not use up the link
                return Response()
            self._used = True
            response = RedirectResponse(url_to(request, "/"), 303)
            sessions.start(response, request, self._who)
            return response

        return [Route("/link", log_in, methods=["GET"])]
