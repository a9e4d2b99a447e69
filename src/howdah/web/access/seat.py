"""Seat: the signed cookie of somebody who has come in.

The cookie says who it is and when that was; only its signature makes it worth anything. Nothing is
kept in memory, so several processes with one secret know each other's visitors.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import timedelta

from itsdangerous import BadSignature, URLSafeTimedSerializer
from starlette.requests import Request
from starlette.responses import Response

COOKIE = "howdah_seat"
LASTS = timedelta(hours=12)


class Seats:
    """Gives out cookies, and knows its own."""

    def __init__(self, secret: str | None = None, lasts: timedelta = LASTS) -> None:
        self._secret = secret or secrets.token_urlsafe(32)
        self._signer = URLSafeTimedSerializer(self._secret, salt="howdah.web.seat")
        self._lasts = int(lasts.total_seconds())

    def who(self, request: Request) -> str | None:
        """Say who sits here, by the cookie."""
        try:
            said: object = self._signer.loads(request.cookies.get(COOKIE, ""), max_age=self._lasts)
        except BadSignature:
            return None
        return said if isinstance(said, str) else None

    def give(self, response: Response, request: Request, who: str) -> None:
        """Give somebody a seat."""
        response.set_cookie(
            COOKIE,
            self._signer.dumps(who),
            max_age=self._lasts,
            path=request.scope.get("root_path", "") or "/",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )

    def take(self, response: Response, request: Request) -> None:
        """Show somebody out."""
        response.delete_cookie(COOKIE, path=request.scope.get("root_path", "") or "/")

    def pledge(self, who: str) -> str:
        """Return the word that a form of ours carries, and that a foreign page cannot know."""
        return hmac.new(self._secret.encode(), f"pledge:{who}".encode(), hashlib.sha256).hexdigest()

    def kept(self, who: str, word: str) -> bool:
        return hmac.compare_digest(self.pledge(who), word)
