"""Paths: where a request points to, below the place where the dashboard is mounted.

A mount inside the dashboard changes `root_path` for what comes after it, so the dashboard's own is
remembered as a request comes in.
"""

from __future__ import annotations

from urllib.parse import quote, urlencode

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = "howdah.root"  # in the scope of a request that came to the dashboard


def remembered(scope: Scope) -> Scope:
    """Return a scope that knows where the dashboard is mounted, whatever is mounted in it."""
    return {**scope, ROOT: scope.get("root_path", "")}


def _root(scope: Scope) -> str:
    return scope[ROOT] if ROOT in scope else scope.get("root_path", "")


def inner_path(scope: Scope) -> str:
    """Return the path of a request as the dashboard names it."""
    path: str = scope["path"]
    root = _root(scope)
    below = root and (path == root or path.startswith(f"{root}/"))
    return path[len(root) :] if below else path


def outer(request: HTTPConnection, path: str, **query: object) -> str:
    """Return the link to a path of the dashboard; a list gives a field for each of its values."""
    asked = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    said = f"?{urlencode(asked, doseq=True)}" if asked else ""
    return f"{quote(_root(request.scope))}{path}{said}"


def place(request: HTTPConnection) -> str:
    """Return the path of our cookies: they are sent to the dashboard and nowhere else."""
    return outer(request, "") or "/"


def below(app: ASGIApp, prefix: str) -> ASGIApp:
    """Serve an app below a prefix, whether the proxy before it cuts the prefix off or not."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path: str = scope["path"]
            whole = path == prefix or path.startswith(f"{prefix}/")
            scope = {**scope, "root_path": prefix, "path": path if whole else prefix + path}
        await app(scope, receive, send)

    return served
