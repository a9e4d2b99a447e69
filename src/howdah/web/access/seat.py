"""Seat: the signed cookie of somebody who has come in.

The cookie says who it is, which session, and when that began; only its signature makes it worth
anything. Several processes with one secret know each other's visitors. The signature is bound to
the password: another password ends all sessions. A session that was left is remembered until its
cookie would have ended, so a copy of the cookie is worth nothing either; see revoked.py.

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
from howdah.web.access.client import address_of
from howdah.web.access.revoked import Revoked
from howdah.web.desk import quoted
from howdah.web.paths import is_https, place

_log = logging.getLogger("howdah.web")

COOKIE = "howdah_seat"
LASTS = timedelta(hours=12)
SHORTEST = 32  # characters of a secret: whoever has a cookie can guess at it without asking us


class Seats:
    """Gives out cookies, and knows its own."""

    def __init__(
        self, secret: str | None = None, lasts: timedelta = LASTS, bound_to: str = ""
    ) -> None:
        if secret and len(secret) < SHORTEST:
            raise BadInput(
                f"the secret of a dashboard has {SHORTEST} characters at least: "
                "`openssl rand -hex 32` makes one"
            )
        self.secret: str = secret or secrets.token_urlsafe(32)
        self._key: str = _hmac(self.secret, f"session:{bound_to}")
        self._signer = URLSafeTimedSerializer(self._key, salt="howdah.web.seat")
        self._lasts = int(lasts.total_seconds())
        self._revoked = Revoked(self._lasts)

    def who(self, request: Request) -> str | None:
        """Say who sits here, by the cookie."""
        match self._read(request):
            case [str(who), str(session)] if session not in self._revoked:
                return who
            case _:
                return None

    def _read(self, request: Request) -> object:
        cookie = request.cookies.get(_name(request), "")
        try:
            return self._signer.loads(cookie, max_age=self._lasts)
        except BadData:
            return None

    def give(self, response: Response, request: Request, who: str) -> None:
        """Give somebody a seat."""
        _log.info("web.entered who=%s from=%s", quoted(who), quoted(address_of(request)))
        response.set_cookie(
            _name(request),
            self._signer.dumps([who, secrets.token_urlsafe(16)]),
            max_age=self._lasts,
            path=place(request),
            secure=is_https(request),
            httponly=True,
            samesite="lax",
        )

    def take(self, response: Response, request: Request) -> None:
        """End a session, also for copies of its cookie, and show somebody out."""
        match self._read(request):
            case [str(who), str(session)]:
                self._revoked.add(session)
                _log.info("web.left who=%s from=%s", quoted(who), quoted(address_of(request)))
            case _:
                pass
        response.delete_cookie(_name(request), path=place(request))

    def pledge(self, who: str) -> str:
        """Return the word that a form of ours carries, and that a foreign page cannot know."""
        return _hmac(self._key, f"pledge:{who}")

    def kept(self, who: str, word: str) -> bool:
        return hmac.compare_digest(self.pledge(who).encode(), word.encode())


def _hmac(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def _name(request: Request) -> str:
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE
