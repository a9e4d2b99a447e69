"""Docs page: the API described for people, and the list of its routes."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from howdah.web.api.endpoint import ROOT, Endpoint, EndpointRoute
from howdah.web.api.openapi import DESCRIPTION, ENDPOINTS, document, tag_of
from howdah.web.context import DashboardContext
from howdah.web.page import PageRoute
from howdah.web.paths import url_to
from howdah.web.render import json_response


def routes() -> list[Route]:
    """Return the routes of the API; fixed paths come before paths with parameters."""
    by_path: dict[str, list[Endpoint]] = {}
    for endpoint in ENDPOINTS:
        by_path.setdefault(endpoint.path, []).append(endpoint)
    ordered = sorted(by_path.items(), key=lambda item: item[0].replace("{", "~"))
    return [
        Route("/api/openapi.json", _openapi, methods=["GET"]),
        PageRoute("/api", "api.html", load, live=False),
        *(EndpointRoute(path, endpoints) for path, endpoints in ordered),
    ]


async def _openapi(request: Request) -> Response:
    return json_response({**document(), "servers": [{"url": url_to(request, ROOT)}]})


async def load(context: DashboardContext, request: Request) -> dict[str, Any]:
    """Return every endpoint with its OpenAPI description."""
    described = document()["paths"]
    return {
        "about": DESCRIPTION,
        "root": ROOT,
        "groups": [
            (
                name,
                [
                    (endpoint, described[endpoint.path][endpoint.method.lower()])
                    for endpoint in ENDPOINTS
                    if tag_of(endpoint) == name
                ],
            )
            for name in dict.fromkeys(map(tag_of, ENDPOINTS))
        ],
        "schemas": document()["components"]["schemas"],
    }
