"""Errors: every error as a response: a page for people, JSON for programs."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from howdah.checks.limit_names import UnknownLimit
from howdah.checks.queue_names import UnknownQueue
from howdah.checks.schedule_names import UnknownSchedule
from howdah.errors import (
    BadInput,
    HowdahError,
    JobEnded,
    JobExists,
    JobNotFound,
    NotAllowed,
    ReadOnly,
    SchemaError,
    Unreachable,
)
from howdah.observe import TookTooLong
from howdah.web.paths import inner_path, url_to
from howdah.web.render import json_response, render

TITLES = {
    400: "Invalid request",
    401: "Log in first",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Not possible now",
    410: "This link was already used",
    413: "Too large",
    429: "Too many attempts",
    503: "The database does not answer",
}

FOR_PROGRAMS = (
    "A program sends the token that the dashboard has in HOWDAH_WEB_TOKEN: Authorization: Bearer …"
)


def status_of(error: HowdahError) -> int:
    """Return the HTTP status of an error."""
    match error:
        case UnknownQueue() | UnknownLimit() | UnknownSchedule():
            return 404
        case BadInput():
            return 400
        case NotAllowed():
            return 403
        case JobNotFound():
            return 404
        case ReadOnly() | JobExists() | JobEnded():
            return 409
        case TookTooLong() | Unreachable() | SchemaError():
            return 503
        case _:
            return 500


def response(request: Request, status: int, sentence: str) -> Response:
    """Return an error response: JSON below /api, else a page."""
    result = _response(request, status, sentence)
    if result.status_code == 401:
        # not Basic: a browser would open its own login dialog
        result.headers["WWW-Authenticate"] = 'Bearer realm="howdah"'
    return result


def _response(request: Request, status: int, sentence: str) -> Response:
    path = inner_path(request.scope)
    if status == 401 and (path.startswith("/api/") or path == "/metrics"):
        sentence = f"{sentence} {FOR_PROGRAMS}"
    if path.startswith("/api/"):
        return json_response({"error": {"status": status, "message": sentence}}, status)
    if path == "/metrics" and status == 401:  # a scraper cannot log in with a form
        return PlainTextResponse(f"{sentence}\n", status)
    login = request.app.state.login if "app" in request.scope else None
    if status == 401 and login and request.method == "GET":
        return RedirectResponse(url_to(request, login), 303)
    title = TITLES.get(status, "An error")
    return render(
        request, "error.html", {"title": title, "sentence": sentence, "status": status}, status
    )


async def on_howdah_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HowdahError)
    return response(request, status_of(error), str(error))


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    result = response(request, error.status_code, error.detail)
    result.headers.update(error.headers or {})
    return result
