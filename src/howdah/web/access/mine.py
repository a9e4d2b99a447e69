"""Mine: the application that the dashboard is mounted in knows who it is.

    app.mount("/queue", dashboard(queue, access=Mine(lambda request: request.user.name)))

The function, plain or async, gets the request with everything that the application's own middleware
left in its scope. It returns a name for the audit line, or None for somebody who may not enter.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.web.access.seat import Seats


class Mine:
    """Access by a function of your own."""

    hint = "The application that this page belongs to decides who may see it."

    def __init__(self, who: Callable[[Request], str | Awaitable[str | None] | None]) -> None:
        self._who = who

    async def who(self, request: Request, seats: Seats) -> str | None:
        found = self._who(request)
        return (await found if inspect.isawaitable(found) else found) or None

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        return ()
