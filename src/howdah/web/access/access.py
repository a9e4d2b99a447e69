"""Access: the question that every way to come in answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.web.access.seat import Seats


class Access(Protocol):
    """A way to know who a visitor is."""

    async def who(self, request: Request, seats: Seats) -> str | None:
        """Say who this is; None is nobody."""
        ...

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        """Return the pages that nobody may open in order to become somebody."""
        ...

    @property
    def hint(self) -> str:
        """Tell a visitor without access how to get it."""
        ...
