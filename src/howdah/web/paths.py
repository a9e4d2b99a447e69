"""Paths: where a request points to, below the place where the dashboard is mounted.

Everything that reads a path reads it here, so the gate and the routes never see two different ones.
A mount inside the dashboard changes `root_path` for what comes after it, so the dashboard's own is
remembered as a request comes in.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlencode

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = "howdah.root"  # in the scope of a request that came to the dashboard


def remembered(scope: Scope) -> Scope:
    """Return a scope that knows where the dashboard is mounted, whatever is mounted in it."""
    return {**scope, ROOT: scope.get("root_path", "")}


def root_of(scope: Scope) -> str:
    """Return the path that the dashboard is mounted at."""
    return scope[ROOT] if ROOT in scope else scope.get("root_path", "")


def inner_path(scope: Scope) -> str:
    """Return the path of a request as the dashboard names it."""
    path: str = scope["path"]
    root = root_of(scope)
    below = root and (path == root or path.startswith(f"{root}/"))
    return path[len(root) :] if below else path


def segments(scope: Scope) -> list[str]:
    """Return the parts of the inner path. A slash that was sent as %2F is inside a part.

    An inner path that does not begin with a real slash has no parts, so it leads nowhere.
    """
    first, *parts = _inner_raw(scope).split("/")
    return [] if first else [unquote(part) for part in parts]


def _inner_raw(scope: Scope) -> str:
    """Return the inner path as it was sent; where that is not known, as it would be sent.

    `raw_path` is believed only if it says the same as `path`, which is what routes are found by.
    """
    path, inner = scope["path"], inner_path(scope)
    raw = (scope.get("raw_path") or b"").decode("ascii", "replace")
    if unquote(raw) != path:
        return quote(inner)
    above = len(path[: len(path) - len(inner)].encode())  # bytes, each sent as itself or as %XX
    found = re.match(rf"(?:%[0-9A-Fa-f]{{2}}|.){{{above}}}", raw, re.DOTALL)
    return raw[found.end() :] if found else quote(inner)


def outer(request: HTTPConnection, path: str, **query: object) -> str:
    """Return the link to a path of the dashboard; a list gives a field for each of its values."""
    asked = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    said = f"?{urlencode(asked, doseq=True)}" if asked else ""
    return f"{quote(root_of(request.scope))}{path}{said}"


def place(request: HTTPConnection) -> str:
    """Return the path of our cookies: they are sent to the dashboard and nowhere else."""
    return outer(request, "") or "/"


def is_https(request: HTTPConnection) -> bool:
    """Say whether the browser speaks https; a header that lies harms only its sender's cookie."""
    forwarded = request.headers.get("x-forwarded-proto", "").rpartition(",")[2].strip()
    return "https" in (request.scope["scheme"], forwarded.lower())


def below(app: ASGIApp, prefix: str) -> ASGIApp:
    """Serve an app below a prefix, whether the proxy before it cuts the prefix off or not."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "root_path": prefix}
            path: str = scope["path"]
            if path != prefix and not path.startswith(f"{prefix}/"):
                scope["path"] = prefix + path
                if scope.get("raw_path") is not None:
                    scope["raw_path"] = quote(prefix).encode() + scope["raw_path"]
        await app(scope, receive, send)

    return served
