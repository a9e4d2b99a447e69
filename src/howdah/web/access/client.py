"""Client: the client address of a request, behind trusted proxies.

Any client can send X-Forwarded-For. So the header is read only if the sender is a trusted proxy,
and from the right, as long as each hop is a trusted proxy too. The rest may be forged.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import Request
from starlette.types import Scope

from howdah.errors import BadInput

CLIENT = "howdah.client"  # scope key, set by the auth middleware
FORWARDED = "x-forwarded-for"


class Proxies:
    """The proxies whose X-Forwarded-For is trusted."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        try:
            self._networks: list[IPv4Network | IPv6Network] = [
                ip_network(network) for network in networks
            ]
        except ValueError as error:
            raise BadInput(
                f"{error}: a proxy is an address such as 10.0.0.7 or a network such as 10.0.0.0/8"
            ) from None

    def trusts(self, host: str) -> bool:
        """Return whether an address is that of a trusted proxy."""
        address = _parsed(host)
        return address is not None and any(address in network for network in self._networks)

    def client(self, request: Request) -> str:
        """Return the address of the client that called the first trusted proxy."""
        client = "" if request.client is None else request.client.host
        hops = ",".join(request.headers.getlist(FORWARDED)).split(",")
        while hops and self.trusts(client):
            hop = _without_port(hops.pop().strip())
            if _parsed(hop) is None:
                break
            client = hop
        return client


def remember_client(scope: Scope, proxies: Proxies) -> None:
    """Store the client address of a request in its scope."""
    scope[CLIENT] = proxies.client(Request(scope))


def address_of(request: Request) -> str:
    """Return the client address; for IPv6 its /64 network, because one machine owns all of it."""
    host = request.scope.get(CLIENT) or ("" if request.client is None else request.client.host)
    address = _parsed(host)
    if address is None:
        return host
    if isinstance(address, IPv6Address):
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)


def _parsed(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped  # a dual-stack socket reports IPv4 clients like this
    return address


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
