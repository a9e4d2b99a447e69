"""Flash: what an action has to say, shown once on the page that comes next.

The words travel in a cookie for a minute. They are our own and are escaped like all text, so it
does no harm that the cookie is not signed.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from howdah.web.paths import is_https, outer, place

COOKIE = "howdah_said"
LONGEST = 500


def redirect(request: Request, path: str, said: str) -> Response:
    """Go on to a page and say there what happened."""
    response = RedirectResponse(outer(request, path), 303)
    response.set_cookie(
        COOKIE,
        quote(said[:LONGEST]),
        max_age=60,
        path=place(request),
        secure=is_https(request),
        httponly=True,
        samesite="strict",
    )
    return response


def read(request: Request) -> str | None:
    said = request.cookies.get(COOKIE)
    return unquote(said)[:LONGEST] if said else None


def forget(request: Request, response: Response) -> None:
    response.delete_cookie(COOKIE, path=place(request))
