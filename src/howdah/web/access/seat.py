"""Seat: the signed cookie of somebody who has come in.

The cookie says who it is and when that was; only its signature makes it worth anything. Nothing is
kept in memory, so several processes with one secret know each other's visitors.

A cookie belongs to a host, whatever the port; its name has the port, so that two dashboards of one
machine do not take each other's visitors away. It comes along when somebody follows a link from a
mail or a chat (SameSite=Lax): that only shows a page, and nothing is done without the pledge.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import secrets
from datetime import timedelta

from itsdangerous import BadData, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

from howdah.errors import BadInput
from howdah.web.access.patience import address_of
from howdah.web.desk import quoted
from howdah.web.paths import place

_log = logging.getLogger("howdah.web")

COOKIE = "howdah_seat"
LASTS = timedelta(hours=12)
SHORTEST = 16  # characters of a secret


class Seats:
    """Gives out cookies, and knows its own."""

    def __init__(self, secret: str | None = None, lasts: timedelta = LASTS) -> None:
        if secret and len(secret) < SHORTEST:
            raise BadInput(f"the secret of a dashboard has {SHORTEST} characters at least")
        self.secret: str = secret or secrets.token_urlsafe(32)
        self._signer = URLSafeTimedSerializer(self.secret, salt="howdah.web.seat")
        self._lasts = int(lasts.total_seconds())

    def who(self, request: Request) -> str | None:
        """Say who sits here, by the cookie."""
        try:
            said: object = self._signer.loads(
                request.cookies.get(_name(request), ""), max_age=self._lasts
            )
        except BadData:
            return None
        return said if isinstance(said, str) else None

    def give(self, response: Response, request: Request, who: str) -> None:
        """Give somebody a seat."""
        _log.info("web.entered who=%s from=%s", quoted(who), quoted(address_of(request)))
        response.set_cookie(
            _name(request),
            self._signer.dumps(who),
            max_age=self._lasts,
            path=place(request),
            secure=_is_private(request),
            httponly=True,
            samesite="lax",
        )

    def take(self, response: Response, request: Request) -> None:
        """Show somebody out."""
        response.delete_cookie(_name(request), path=place(request))

    def pledge(self, who: str) -> str:
        """Return the word that a form of ours carries, and that a foreign page cannot know."""
        return hmac.new(self.secret.encode(), f"pledge:{who}".encode(), hashlib.sha256).hexdigest()

    def kept(self, who: str, word: str) -> bool:
        return hmac.compare_digest(self.pledge(who).encode(), word.encode())


def _name(request: Request) -> str:
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE


def _is_private(request: Request) -> bool:
    """Say whether the browser speaks https; a header that lies harms only its sender's cookie."""
    forwarded = request.headers.get("x-forwarded-proto", "").rpartition(",")[2].strip()
    return "https" in (request.scope["scheme"], forwarded.lower())
