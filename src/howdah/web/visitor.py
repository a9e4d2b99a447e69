"""Visitor: the user of an authenticated request, as a mark in its scope.

Only auth_middleware.py sets the mark. Every route that is not public refuses a request without it.
So even a path that middleware and router read differently shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

VISITOR = "howdah.visitor"  # scope key


class Visitor(msgspec.Struct, frozen=True):
    """An authenticated user."""

    who: str
    csrf_token: str
    still_valid: Callable[[], bool] = lambda: True  # returns whether the session is still valid


def without_visitor(scope: Scope) -> Scope:
    """Return a scope without a visitor, whatever an app around us put into it."""
    return {**scope, VISITOR: None}


def admit(scope: Scope, visitor: Visitor) -> None:
    """Mark a request as authenticated."""
    scope[VISITOR] = visitor


def visitor_in(scope: Scope) -> Visitor | None:
    """Return the visitor of a request; None if it is not authenticated."""
    visitor = scope.get(VISITOR)
    return visitor if isinstance(visitor, Visitor) else None


def visitor_of(request: HTTPConnection) -> Visitor:
    """Return the visitor of a request; refuse a request that is not authenticated."""
    visitor = visitor_in(request.scope)
    if visitor is None:
        raise HTTPException(401, "this request is not authenticated: log in first")
    return visitor


def who_of(request: HTTPConnection) -> str:
    """Return the name of the user who sent a request."""
    return visitor_of(request).who


def require_visitor(route: Route | Mount) -> Route | Mount:
    """Make a route refuse every request that is not authenticated."""
    route.app = _RequireVisitor(route.app)
    return route


class _RequireVisitor:
    """ASGI middleware around one route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor_of(HTTPConnection(scope))
        await self._app(scope, receive, send)
