"""TrustedHeader: a proxy has asked who it is, and says so in a header.

Anybody can send a header, so it counts only when it comes from an address that is named. A proxy
that adds its header behind one that the visitor sent tells us nothing: two are none.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.errors import BadInput
from howdah.web.access.client import Proxies
from howdah.web.access.seat import Seats


class TrustedHeader:
    """Access by what a proxy says."""

    def __init__(self, name: str, proxies: Sequence[str]) -> None:
        if not proxies:
            raise BadInput("name the addresses of the proxy: anybody else can send the header too")
        self._proxies = Proxies(proxies)
        self._name = name

    @property
    def hint(self) -> str:
        return f"The proxy before this page says who you are, in the header {self._name}."

    async def who(self, request: Request, seats: Seats) -> str | None:
        said = request.headers.getlist(self._name)
        sender = request.client.host if request.client else ""
        if len(said) != 1 or not self._proxies.trusts(sender):
            return None
        return said[0].strip() or None

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        return ()
