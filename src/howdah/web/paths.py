"""Paths: where a request points to, below the place where the dashboard is mounted."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import HTTPConnection
from starlette.types import Scope


def inner_path(scope: Scope) -> str:
    """Return the path of a request as the dashboard names it."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root) else path


def outer(request: HTTPConnection, path: str, **query: object) -> str:
    """Return the link to a path of the dashboard; a list gives a field for each of its values."""
    asked = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    said = f"?{urlencode(asked, doseq=True)}" if asked else ""
    return f"{request.scope.get('root_path', '')}{path}{said}"
