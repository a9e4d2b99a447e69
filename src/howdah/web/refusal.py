"""Refusal: every error as an answer, a page for people and JSON for programs."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from howdah.errors import (
    BadInput,
    HowdahError,
    JobNotFound,
    NotAllowed,
    ReadOnly,
    SchemaError,
    Unreachable,
)
from howdah.observe import TookTooLong
from howdah.web.draw import json_response, render
from howdah.web.paths import inner_path, outer

TITLES = {
    400: "That does not fit",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Not like this",
    409: "Not now",
    410: "This link was used",
    413: "Too large",
    429: "Too often",
    503: "The database does not answer",
}


def status_of(error: HowdahError) -> int:
    """Say which status an error has."""
    match error:
        case BadInput():
            return 400
        case NotAllowed():
            return 403
        case JobNotFound():
            return 404
        case ReadOnly():
            return 409
        case TookTooLong() | Unreachable() | SchemaError():
            return 503
        case _:
            return 500


def response(request: Request, status: int, sentence: str) -> Response:
    """Answer with an error: JSON below /api, else a page."""
    answer = _answer(request, status, sentence)
    if answer.status_code == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="howdah"'  # a browser asks nothing
    return answer


def _answer(request: Request, status: int, sentence: str) -> Response:
    path = inner_path(request.scope)
    if path.startswith("/api/"):
        return json_response({"error": {"status": status, "message": sentence}}, status)
    if path == "/metrics" and status == 401:  # a scraper cannot log in with a form
        return PlainTextResponse(f"{sentence}\n", status)
    login = request.app.state.login if "app" in request.scope else None
    if status == 401 and login and request.method == "GET":
        return RedirectResponse(outer(request, login), 303)
    title = TITLES.get(status, "That went wrong")
    return render(
        request, "refusal.html", {"title": title, "sentence": sentence, "status": status}, status
    )


async def on_howdah_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HowdahError)
    return response(request, status_of(error), str(error))


async def on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = response(request, error.status_code, error.detail)
    answer.headers.update(error.headers or {})
    return answer
