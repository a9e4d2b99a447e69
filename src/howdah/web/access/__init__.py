"""Access: the ways to authenticate a user of the dashboard.

    access.py      the protocol that every way implements
    app_access.py  the application that mounts the dashboard decides
    client.py      the client address of a request, behind trusted proxies
    header.py      a proxy authenticates and sends the name in a header
    link.py        a one-time link, for the user who started the dashboard
    password.py    a user name and a password
    revoked.py     the sessions that were logged out
    session.py     the signed session cookie and the CSRF token
    throttle.py    the delay after wrong passwords and tokens

Every way answers one question: who sent this request? None means nobody: the request is refused.
"""

from __future__ import annotations

from howdah.web.access.access import Access
from howdah.web.access.app_access import AppAccess
from howdah.web.access.header import TrustedHeader
from howdah.web.access.link import OneTimeLink
from howdah.web.access.password import Password
from howdah.web.access.session import Sessions

__all__ = ["Access", "AppAccess", "OneTimeLink", "Password", "Sessions", "TrustedHeader"]
