"""TrustedHeader: a proxy has asked who it is, and says so in a header.

Anybody can send a header, so it counts only when it comes from an address that is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from starlette.requests import Request
from starlette.routing import BaseRoute

from howdah.errors import BadInput
from howdah.web.access.seat import Seats


class TrustedHeader:
    """Access by what a proxy says."""

    def __init__(self, name: str, proxies: Sequence[str]) -> None:
        if not proxies:
            raise BadInput("name the addresses of the proxy: anybody else can send the header too")
        try:
            self._proxies = [ip_network(one) for one in proxies]
        except ValueError as error:
            raise BadInput(
                f"a proxy is an address such as 10.0.0.7 or 10.0.0.0/8: {error}"
            ) from None
        self._name = name

    @property
    def hint(self) -> str:
        return f"The proxy before this page says who you are, in the header {self._name}."

    def who(self, request: Request, seats: Seats) -> str | None:
        if request.client is None:
            return None
        try:
            sender = ip_address(request.client.host)
        except ValueError:
            return None
        trusted = any(sender in proxy for proxy in self._proxies)
        return (request.headers.get(self._name) or None) if trusted else None

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        return ()
