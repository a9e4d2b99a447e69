"""Access: the protocol of every way to authenticate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.web.access.session import Sessions


class Access(Protocol):
    """A way to authenticate the sender of a request."""

    async def who(self, request: Request, sessions: Sessions) -> str | None:
        """Return the user of a request; None if it is not authenticated."""
        ...

    def login_routes(self, sessions: Sessions) -> Sequence[BaseRoute]:
        """Return the public routes that log a user in or out."""
        ...

    @property
    def hint(self) -> str:
        """Tell an unauthenticated visitor how to log in."""
        ...
