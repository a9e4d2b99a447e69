"""Session: the signed session cookie and the CSRF token.

The cookie holds the user, a session id and the time of the login. Processes with the same secret
accept each other's cookies. The signing key depends on the password: a new password ends all
sessions. A logged-out session is revoked, so copies of its cookie are invalid too: see revoked.py.

Cookies ignore the port, so the cookie's name contains it: two dashboards on one machine keep
separate sessions. SameSite=Lax lets links from a mail or a chat work. They can only show pages,
because an action needs the CSRF token.
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
from howdah.web.context import quoted
from howdah.web.paths import cookie_path, is_https

_log = logging.getLogger("howdah.web")

COOKIE = "howdah_session"
LIFETIME = timedelta(hours=12)
MIN_SECRET_LENGTH = 32  # characters: a stolen cookie allows offline guessing


class Sessions:
    """Creates, checks and ends sessions."""

    def __init__(
        self, secret: str | None = None, lifetime: timedelta = LIFETIME, bound_to: str = ""
    ) -> None:
        if secret and len(secret) < MIN_SECRET_LENGTH:
            raise BadInput(
                f"the secret of the dashboard is too short: it needs at least {MIN_SECRET_LENGTH} "
                "characters. `openssl rand -hex 32` makes one"
            )
        self.secret: str = secret or secrets.token_urlsafe(32)
        self._key: str = _hmac(self.secret, f"session:{bound_to}")
        self._signer = URLSafeTimedSerializer(self._key, salt="howdah.web.session")
        self._max_age = int(lifetime.total_seconds())
        self._revoked = Revoked(self._max_age)

    def who(self, request: Request) -> str | None:
        """Return the user of a request's session cookie; None if it is not valid."""
        match self._read(request):
            case [str(who), str(session)] if session not in self._revoked:
                return who
            case _:
                return None

    def _read(self, request: Request) -> object:
        cookie = request.cookies.get(_cookie_name(request), "")
        try:
            return self._signer.loads(cookie, max_age=self._max_age)
        except BadData:
            return None

    def start(self, response: Response, request: Request, who: str) -> None:
        """Log a user in: set the session cookie."""
        _log.info("web.logged_in who=%s from=%s", quoted(who), quoted(address_of(request)))
        response.set_cookie(
            _cookie_name(request),
            self._signer.dumps([who, secrets.token_urlsafe(16)]),
            max_age=self._max_age,
            path=cookie_path(request),
            secure=is_https(request),
            httponly=True,
            samesite="lax",
        )

    def end(self, response: Response, request: Request) -> None:
        """Log a user out: revoke the session and delete its cookie."""
        match self._read(request):
            case [str(who), str(session)]:
                self._revoked.add(session)
                _log.info("web.logged_out who=%s from=%s", quoted(who), quoted(address_of(request)))
            case _:
                pass
        response.delete_cookie(_cookie_name(request), path=cookie_path(request))

    def csrf_token(self, who: str) -> str:
        """Return the CSRF token of a user. A page of another site cannot know it."""
        return _hmac(self._key, f"csrf:{who}")

    def csrf_token_matches(self, who: str, token: str) -> bool:
        return hmac.compare_digest(self.csrf_token(who).encode(), token.encode())


def _hmac(key: str, text: str) -> str:
    return hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()


def _cookie_name(request: Request) -> str:
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}_{port}" if port.isdecimal() else COOKIE
