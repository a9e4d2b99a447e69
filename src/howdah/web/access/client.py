"""Client: the address that a request comes from, past the proxies that are trusted.

Anybody can send X-Forwarded-For, so it is read only when the sender is a named proxy: from the
right, as far as the hops are named proxies too. What stands further left may be invented.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from starlette.requests import Request
from starlette.types import Scope

from howdah.errors import BadInput

CLIENT = "howdah.client"  # in the scope of a request, once the gate has found it out
FORWARDED = "x-forwarded-for"


class Proxies:
    """The proxies that are trusted to say whom they speak for."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        try:
            self._networks: list[IPv4Network | IPv6Network] = [ip_network(one) for one in networks]
        except ValueError as error:
            raise BadInput(
                f"a proxy is an address such as 10.0.0.7 or 10.0.0.0/8: {error}"
            ) from None

    def trusts(self, host: str) -> bool:
        """Say whether an address is that of a named proxy."""
        address = _parsed(host)
        return address is not None and any(address in one for one in self._networks)

    def client(self, request: Request) -> str:
        """Return the address of whoever sent a request to the first trusted proxy."""
        found = "" if request.client is None else request.client.host
        hops = ",".join(request.headers.getlist(FORWARDED)).split(",")
        while hops and self.trusts(found):
            said = _without_port(hops.pop().strip())
            if _parsed(said) is None:
                break
            found = said
        return found


def remember_client(scope: Scope, proxies: Proxies) -> None:
    """Find out where a request comes from, once."""
    scope[CLIENT] = proxies.client(Request(scope))


def address_of(request: Request) -> str:
    """Return where a request comes from; of IPv6 the network, which one machine has as a whole."""
    host = request.scope.get(CLIENT) or ("" if request.client is None else request.client.host)
    found = _parsed(host)
    if found is None:
        return host
    if isinstance(found, IPv6Address):
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)


def _parsed(host: str) -> IPv4Address | IPv6Address | None:
    try:
        found = ip_address(host)
    except ValueError:
        return None
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        return found.ipv4_mapped  # how a socket for both kinds writes the old kind
    return found


def _without_port(hop: str) -> str:
    if hop.startswith("["):
        return hop[1:].partition("]")[0]
    return hop.partition(":")[0] if hop.count(":") == 1 else hop
