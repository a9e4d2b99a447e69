"""App: the dashboard as an ASGI app, to serve alone or to mount in another app.

from howdah.web import AppAccess, dashboard

app.mount("/queue", dashboard(queue, access=AppAccess(lambda request: request.user.name)))
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from howdah.client.queue import Queue
from howdah.errors import HowdahError
from howdah.metrics.prometheus import CONTENT_TYPE, prometheus
from howdah.web import api, bulk, errors, pages
from howdah.web.access import Access, Password, Sessions
from howdah.web.access.client import Proxies
from howdah.web.access.throttle import Throttle
from howdah.web.auth_middleware import AuthMiddleware, checked_token
from howdah.web.context import DashboardContext, Settings, context_of
from howdah.web.headers_middleware import HeadersMiddleware
from howdah.web.live import Live
from howdah.web.probes import Probes
from howdah.web.visitor import require_visitor

TOKEN = "HOWDAH_WEB_TOKEN"  # noqa: S105 - the name of a variable
SECRET = "HOWDAH_WEB_SECRET"  # noqa: S105


def dashboard(
    queue: Queue,
    *,
    access: Access,
    read_only: bool = False,
    redact: Iterable[str] = (),
    within: timedelta = timedelta(seconds=2),
    title: str = "howdah",
    hosts: Sequence[str] = ("*",),
    proxies: Sequence[str] = (),
    token: str | None = None,
    secret: str | None = None,
) -> Starlette:
    """Make the dashboard of a queue.

    `access` authenticates users; it has no default. Values under the payload keys in `redact` are
    never shown. `within` is the time limit of a database query. Programs authenticate with `token`
    (HOWDAH_WEB_TOKEN), as `Authorization: Bearer …`. Several processes that serve one dashboard
    need a common `secret` (HOWDAH_WEB_SECRET). `hosts` are the accepted names in the Host header.
    `proxies` are the proxies whose X-Forwarded-For is trusted.
    """
    settings = Settings(
        read_only=read_only,
        redact=frozenset(key.casefold() for key in redact),
        within=within,
        title=title,
    )
    bound_to = access.credential if isinstance(access, Password) else ""
    sessions = Sessions(secret or os.environ.get(SECRET), bound_to=bound_to)
    login_routes = list(access.login_routes(sessions))
    probes = Probes(queue, within).routes()
    public = [
        *probes,
        *login_routes,
        Mount("/static", StaticFiles(packages=[("howdah.web", "static")])),
    ]
    all_pages = pages.all_pages()
    private: list[Route] = [
        *all_pages,
        *pages.all_actions(),
        Live(all_pages).route,
        *api.routes(),
        Route("/metrics", _metrics, methods=["GET"]),
    ]
    app = Starlette(
        routes=[
            *public,
            *map(require_visitor, private),
        ],  # public ones first: see auth_middleware.py
        middleware=[
            Middleware(HeadersMiddleware),
            Middleware(
                AuthMiddleware,
                access=access,
                sessions=sessions,
                read_only=read_only,
                token=checked_token(token or os.environ.get(TOKEN)),
                hosts=hosts,
                public=public,
                probes=probes,
                proxies=Proxies(proxies),
                throttle=Throttle(),
            ),
            Middleware(bulk.ResumeBulkJobs),
            Middleware(GZipMiddleware, minimum_size=1000),
        ],
        exception_handlers={
            HowdahError: errors.on_howdah_error,
            errors.HTTPException: errors.on_http_error,
        },
        lifespan=_lifespan,
    )
    app.state.context = DashboardContext(queue, settings, sessions.secret)
    app.state.login = next(
        (
            route.path
            for route in login_routes
            if isinstance(route, Route) and route.path == "/login"
        ),
        None,
    )
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncGenerator[None]:
    """Release a running bulk job when the app stops. A mounted app never runs this."""
    try:
        yield
    finally:
        await bulk.runner_of(app.state.context).stop()


async def _metrics(request: Request) -> Response:
    context = context_of(request)
    text = await prometheus(context.store, within=context.within)
    return PlainTextResponse(text, headers={"content-type": CONTENT_TYPE})
