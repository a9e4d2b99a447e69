"""AppAccess: the application that mounts the dashboard authenticates its users.

    app.mount("/queue", dashboard(queue, access=AppAccess(lambda request: request.user.name)))

The function may be plain or async. It gets the request with everything that the application's
middleware put into its scope. It returns a name for the audit line, or None to refuse.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.web.access.session import Sessions


class AppAccess:
    """Access by a function of your application."""

    hint = "The application that serves this page decides who may see it: log in there first."

    def __init__(self, who: Callable[[Request], str | Awaitable[str | None] | None]) -> None:
        self._who = who

    async def who(self, request: Request, sessions: Sessions) -> str | None:
        user = self._who(request)
        return (await user if inspect.isawaitable(user) else user) or None

    def login_routes(self, sessions: Sessions) -> Sequence[BaseRoute]:
        return ()
