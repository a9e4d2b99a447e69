"""TrustedHeader: a proxy authenticates the user and sends the name in a header.

Any client can send a header, so it counts only if the sender is a named proxy. If the header
arrives twice, none is trusted: one of them may come from the client.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.errors import BadInput
from howdah.web.access.client import Proxies
from howdah.web.access.session import Sessions


class TrustedHeader:
    """Access by a header of a trusted proxy."""

    def __init__(self, name: str, proxies: Sequence[str]) -> None:
        if not proxies:
            raise BadInput(
                "no proxy is trusted: name the addresses of the proxy that sends the header"
            )
        self._proxies = Proxies(proxies)
        self._name = name

    @property
    def hint(self) -> str:
        return f"Log in at the proxy in front of this page. It sends the header {self._name}."

    async def who(self, request: Request, sessions: Sessions) -> str | None:
        names = request.headers.getlist(self._name)
        sender = request.client.host if request.client else ""
        if len(names) != 1 or not self._proxies.trusts(sender):
            return None
        return names[0].strip() or None

    def login_routes(self, sessions: Sessions) -> Sequence[BaseRoute]:
        return ()
