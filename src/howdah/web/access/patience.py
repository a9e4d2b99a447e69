"""Patience: wrong answers cost time, and too many of late cost a minute.

Counted by address, so that one who guesses does not lock out everybody else. A try counts as wrong
from its beginning until it has proved right: tries side by side are not cheaper than one by one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address

from starlette.requests import Request

FORGIVEN = 60.0  # seconds after which a wrong answer no longer counts
MANY = 20  # wrong answers within that time, after which no answer is read
LONGEST = 10.0  # seconds that one answer waits
REMEMBERED = 10_000  # addresses


class Patience:
    """Remembers who answered wrongly of late."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._wrong: dict[str, list[float]] = {}

    def spent(self, address: str) -> bool:
        """Say whether there were too many wrong answers from here."""
        return len(self._recent(address)) >= MANY

    def wait(self, address: str) -> float:
        """Say how many seconds an answer from here has to wait."""
        wrong = len(self._recent(address))
        return min(0.1 * 2**wrong, LONGEST) if wrong else 0.0

    def count(self, address: str) -> float:
        """Count a try as wrong; returns what to give to `forgive`."""
        at = self._clock()
        if address not in self._wrong and len(self._wrong) >= REMEMBERED:
            self._make_room()
        self._wrong.setdefault(address, []).append(at)
        return at

    def forgive(self, address: str, at: float) -> None:
        """Take back a try that proved right; other wrong ones from there still count."""
        recent = self._recent(address)
        if at in recent:
            recent.remove(at)

    def _recent(self, address: str) -> list[float]:
        now = self._clock()
        recent = [at for at in self._wrong.get(address, ()) if now - at < FORGIVEN]
        if recent:
            self._wrong[address] = recent
        else:
            self._wrong.pop(address, None)
        return recent

    def _make_room(self) -> None:
        for address in list(self._wrong):
            self._recent(address)
        while len(self._wrong) >= REMEMBERED:
            del self._wrong[next(iter(self._wrong))]


def address_of(request: Request) -> str:
    """Return where a request comes from; of IPv6 the network, which one machine has as a whole."""
    if request.client is None:
        return ""
    try:
        found = ip_address(request.client.host)
    except ValueError:
        return request.client.host
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(IPv6Address(int(found) >> 64 << 64))
    return str(found)
