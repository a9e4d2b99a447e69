"""Flash: a message about an action, shown once on the next page.

The message is in a cookie for one minute. It is escaped like all text, so the cookie need not be
signed.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from howdah.web.paths import cookie_path, is_https, url_to

COOKIE = "howdah_flash"
MAX_LENGTH = 500


def redirect(request: Request, path: str, message: str) -> Response:
    """Redirect to a page that shows a message."""
    response = RedirectResponse(url_to(request, path), 303)
    response.set_cookie(
        COOKIE,
        quote(message[:MAX_LENGTH]),
        max_age=60,
        path=cookie_path(request),
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )
    return response


def read(request: Request) -> str | None:
    message = request.cookies.get(COOKIE)
    return unquote(message)[:MAX_LENGTH] if message else None


def forget(request: Request, response: Response) -> None:
    response.delete_cookie(COOKIE, path=cookie_path(request))
