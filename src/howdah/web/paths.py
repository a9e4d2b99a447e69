"""Paths: the path of a request below the mount point of the dashboard, and URLs for links.

Middleware and routes all read paths here, so they never disagree. A mount inside the dashboard
changes `root_path`, so the dashboard's own is stored when a request arrives.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlencode

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

ROOT = "howdah.root"  # scope key: where the dashboard is mounted


def with_root(scope: Scope) -> Scope:
    """Return a scope that stores where the dashboard is mounted."""
    return {**scope, ROOT: scope.get("root_path", "")}


def root_of(scope: Scope) -> str:
    """Return the path at which the dashboard is mounted."""
    return scope[ROOT] if ROOT in scope else scope.get("root_path", "")


def inner_path(scope: Scope) -> str:
    """Return the path of a request below the mount point."""
    path: str = scope["path"]
    root = root_of(scope)
    below = root and (path == root or path.startswith(f"{root}/"))
    return path[len(root) :] if below else path


def segments(scope: Scope) -> list[str]:
    """Return the segments of the inner path. A slash that was sent as %2F stays in its segment.

    An inner path that does not begin with a real slash has no segments and matches no route.
    """
    first, *parts = _inner_raw(scope).split("/")
    return [] if first else [unquote(part) for part in parts]


def _inner_raw(scope: Scope) -> str:
    """Return the inner path, percent-encoded.

    `raw_path` is used only if it decodes to `path`, because the router matches `path`.
    """
    path, inner = scope["path"], inner_path(scope)
    raw = (scope.get("raw_path") or b"").decode("ascii", "replace")
    if unquote(raw) != path:
        return quote(inner)
    prefix = len(path[: len(path) - len(inner)].encode())  # bytes, each sent raw or as %XX
    match = re.match(rf"(?:%[0-9A-Fa-f]{{2}}|.){{{prefix}}}", raw, re.DOTALL)
    return raw[match.end() :] if match else quote(inner)


def url_to(request: HTTPConnection, path: str, **query: object) -> str:
    """Return the URL of a path of the dashboard. A list becomes a repeated query field."""
    fields = {name: value for name, value in query.items() if value not in (None, "", (), [])}
    encoded = f"?{urlencode(fields, doseq=True)}" if fields else ""
    return f"{quote(root_of(request.scope))}{path}{encoded}"


def cookie_path(request: HTTPConnection) -> str:
    """Return the path of our cookies, so that only the dashboard gets them."""
    return url_to(request, "") or "/"


def is_https(request: HTTPConnection) -> bool:
    """Return whether the browser uses https. A forged header harms only its sender's cookie."""
    forwarded = request.headers.get("x-forwarded-proto", "").rpartition(",")[2].strip()
    return "https" in (request.scope["scheme"], forwarded.lower())


def with_prefix(app: ASGIApp, prefix: str) -> ASGIApp:
    """Serve an app below a prefix, whether the proxy removes the prefix or not."""

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
