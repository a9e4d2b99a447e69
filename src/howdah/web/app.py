"""App: the dashboard as an ASGI app, to be served by itself or mounted in another.

from howdah.web import Mine, dashboard

app.mount("/queue", dashboard(queue, access=Mine(lambda request: request.user.name)))
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
from howdah.web import api, bulk, pages, refusal
from howdah.web.access import Access, Password, Seats
from howdah.web.access.client import Proxies
from howdah.web.access.throttle import Throttle
from howdah.web.answer import Answers
from howdah.web.desk import Desk, Settings, desk_of
from howdah.web.gate import Gate, checked_token
from howdah.web.live import Live
from howdah.web.probes import Probes
from howdah.web.visitor import closed

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

    `access` says who may enter: there is no default. Values under the payload keys in `redact` are
    never shown. A look may take the database as long as `within`. `token` (HOWDAH_WEB_TOKEN) lets
    programs in with `Authorization: Bearer …`; several processes that serve one dashboard need one
    `secret` (HOWDAH_WEB_SECRET). `hosts` are the names that a request may call this server.
    `proxies` are the proxies whose X-Forwarded-For says where a request comes from.
    """
    settings = Settings(
        read_only=read_only,
        redact=frozenset(key.casefold() for key in redact),
        within=within,
        title=title,
    )
    bound_to = access.credential if isinstance(access, Password) else ""
    seats = Seats(secret or os.environ.get(SECRET), bound_to=bound_to)
    doors = list(access.doors(seats))
    probes = Probes(queue, within).routes()
    public = [*probes, *doors, Mount("/static", StaticFiles(packages=[("howdah.web", "static")]))]
    shown = pages.all_pages()
    private: list[Route] = [
        *shown,
        *pages.all_actions(),
        Live(shown).route,
        *api.routes(),
        Route("/metrics", _metrics, methods=["GET"]),
    ]
    app = Starlette(
        routes=[*public, *map(closed, private)],  # what is public comes first: see gate.py
        middleware=[
            Middleware(Answers),
            Middleware(
                Gate,
                access=access,
                seats=seats,
                read_only=read_only,
                token=checked_token(token or os.environ.get(TOKEN)),
                hosts=hosts,
                public=public,
                probes=probes,
                proxies=Proxies(proxies),
                throttle=Throttle(),
            ),
            Middleware(bulk.LeftBehind),
            Middleware(GZipMiddleware, minimum_size=1000),
        ],
        exception_handlers={
            HowdahError: refusal.on_howdah_error,
            refusal.HTTPException: refusal.on_http_error,
        },
        lifespan=_lifespan,
    )
    app.state.desk = Desk(queue, settings, seats.secret)
    app.state.login = next(
        (door.path for door in doors if isinstance(door, Route) and door.path == "/login"), None
    )
    return app


@asynccontextmanager
async def _lifespan(app: Starlette) -> AsyncGenerator[None]:
    """Let go of a bulk job when the app stops; what is mounted in another app is not told."""
    try:
        yield
    finally:
        await bulk.hands_of(app.state.desk).stop()


async def _metrics(request: Request) -> Response:
    desk = desk_of(request)
    text = await prometheus(desk.store, within=desk.within)
    return PlainTextResponse(text, headers={"content-type": CONTENT_TYPE})
