"""Visitor: who the gate let in, as a mark that only the gate sets.

Comes after   gate.py, which admits
Comes before  every page and every call of the API, which ask

Whatever is not public is closed by default: a route answers only to a request that has the mark.
So a path that the gate and a route would read in different ways still shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send

VISITOR = "howdah.visitor"  # in the scope of a request that was let in


class Visitor(msgspec.Struct, frozen=True):
    """Somebody who was let in."""

    who: str
    pledge: str
    stays: Callable[[], bool] = lambda: True  # says whether the session still holds


def without_visitor(scope: Scope) -> Scope:
    """Return a scope in which nobody was let in yet, whatever an app around us left in it."""
    return {**scope, VISITOR: None}


def admit(scope: Scope, visitor: Visitor) -> None:
    """Let somebody in."""
    scope[VISITOR] = visitor


def visitor_in(scope: Scope) -> Visitor | None:
    """Return who was let in, if anybody was."""
    found = scope.get(VISITOR)
    return found if isinstance(found, Visitor) else None


def visitor_of(request: HTTPConnection) -> Visitor:
    """Return who was let in; refuse when nobody was."""
    found = visitor_in(request.scope)
    if found is None:
        raise HTTPException(401, "nobody was let in")
    return found


def who_of(request: HTTPConnection) -> str:
    """Say who sent a request."""
    return visitor_of(request).who


def closed(route: Route | Mount) -> Route | Mount:
    """Close a route: it refuses a request that nobody was let in with."""
    route.app = _Closed(route.app)
    return route


class _Closed:
    """An ASGI app around one route."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor_of(HTTPConnection(scope))
        await self._app(scope, receive, send)
