"""TrustedHeader: a proxy has asked who it is, and says so in a header.

Anybody can send a header, so it counts only when it comes from an address that is named. A proxy
that adds its header behind one that the visitor sent tells us nothing: two are none.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address, ip_network

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

    async def who(self, request: Request, seats: Seats) -> str | None:
        said = request.headers.getlist(self._name)
        if len(said) != 1 or not self._is_proxy(request):
            return None
        return said[0].strip() or None

    def _is_proxy(self, request: Request) -> bool:
        try:
            sender = ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        if isinstance(sender, IPv6Address) and sender.ipv4_mapped is not None:
            sender = sender.ipv4_mapped  # how a socket for both kinds writes the old kind
        return any(sender in proxy for proxy in self._proxies)

    def doors(self, seats: Seats) -> Sequence[BaseRoute]:
        return ()
