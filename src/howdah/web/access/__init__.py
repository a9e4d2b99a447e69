"""Access: ways to know who a visitor is.

    client.py     the address that a request comes from, past trusted proxies
    seat.py       the signed cookie of somebody who has come in; revoked.py, those who left
    link.py       a link that works once: for the machine's own user
    password.py   a name and a password; throttle.py, what wrong ones cost
    header.py     a proxy has asked already, and says so in a header
    mine.py       the application that the dashboard is mounted in knows

Every way answers one question: who is this? None is nobody, and nobody gets in.
"""

from __future__ import annotations

from howdah.web.access.access import Access
from howdah.web.access.header import TrustedHeader
from howdah.web.access.link import OneTimeLink
from howdah.web.access.mine import Mine
from howdah.web.access.password import Password
from howdah.web.access.seat import Seats

__all__ = ["Access", "Mine", "OneTimeLink", "Password", "Seats", "TrustedHeader"]
