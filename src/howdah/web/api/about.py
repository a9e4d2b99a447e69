"""About: the API for people, as a page, and every route of the API.

Comes after  described.py  from which page and description are both written
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.web.api.call import ROOT, Call, Place
from howdah.web.api.described import ABOUT, CALLS, document, tag_of
from howdah.web.desk import Desk
from howdah.web.draw import json_response
from howdah.web.page import Page
from howdah.web.paths import outer


def routes() -> list[Route]:
    """Return the routes of the API, the fixed paths before those with a part that varies."""
    by_path: dict[str, list[Call]] = {}
    for call in CALLS:
        by_path.setdefault(call.path, []).append(call)
    ordered = sorted(by_path.items(), key=lambda item: item[0].replace("{", "~"))
    return [
        Route("/api/openapi.json", _openapi, methods=["GET"]),
        Page("/api", "api.html", look, live=False),
        *(Place(path, calls) for path, calls in ordered),
    ]


async def _openapi(request: Request) -> Response:
    return json_response({**document(), "servers": [{"url": outer(request, ROOT)}]})


async def look(desk: Desk, request: Request) -> dict[str, Any]:
    """Tell what the page shows: every call, with what its description says."""
    described = document()["paths"]
    return {
        "about": ABOUT,
        "root": ROOT,
        "groups": [
            (
                name,
                [
                    (call, described[call.path][call.method.lower()])
                    for call in CALLS
                    if tag_of(call) == name
                ],
            )
            for name in dict.fromkeys(map(tag_of, CALLS))
        ],
        "schemas": document()["components"]["schemas"],
    }
