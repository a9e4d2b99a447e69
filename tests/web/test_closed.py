"""Closed: nobody gets in without a credential, on any route, however the path is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any
from uuid import UUID

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from howdah import Queue
from howdah.web import Mine, OneTimeLink, Password, dashboard
from howdah.web.access import Access
from tests.web.planted import PLANTED, planted
from tests.web.raw import PLACES, ask, mounted, prefix_cut, prefix_kept, scope_of
from tests.web.serving import served_app

TOKEN = "a token of a program, 32 characters long"
PROGRAM = {"authorization": f"Bearer {TOKEN}"}
PUBLIC = {"/login", "/leave", "/enter", "/static", "/healthz", "/readyz"}  # open to nobody's harm


def someone_else() -> Access:
    return Mine(lambda _: None)


WAYS_IN = {
    "link": OneTimeLink,
    "password": lambda: Password("correct horse"),
    "nobody": someone_else,
}


def paths_of(route: BaseRoute, id: UUID) -> list[tuple[str, str]]:
    """Return methods and paths of a route, with values in the places of its parts."""
    values = {"id": str(id), "job_type": "letters", "worker_id": "w", "part": "data"}
    if isinstance(route, Mount):
        return [("GET", f"{route.path}/howdah.css"), ("GET", f"{route.path}/nothing")]
    assert isinstance(route, Route), route
    path = re.sub(r"\{(\w+)[^}]*\}", lambda found: values.get(found[1], "cancel"), route.path)
    return [(method, path) for method in sorted(route.methods or {"GET", "POST"})]


def every_request(app: Starlette, id: UUID) -> list[tuple[str, str]]:
    """Return what every route of a dashboard answers; a new route is among it by itself."""
    return [asked for route in app.routes for asked in paths_of(route, id)]


def written(path: str) -> Iterator[str]:
    """Write a path in other ways: each trick in each position."""
    yield path
    yield path.upper()
    yield path + "/"
    yield path + "%2F"
    yield path + "?page=/jobs"
    for at in (found.start() for found in re.finditer("/", path)):
        before, behind = path[:at], path[at + 1 :]
        for slash in ("%2F", "//", "/%2e/", "/..%2f", ";/", "/;", "%252F"):
            yield f"{before}{slash}{behind}"
        for way_around in ("/static/", "%2Fstatic/", "/static%2F", "/static/%2e%2e/", "/login/"):
            yield f"{before}{way_around}{behind}"
        yield f"{before}/{behind[:1].swapcase()}{behind[1:]}"
        if behind:
            yield f"{before}/%{ord(behind[0]):02x}{behind[1:]}"


@pytest.mark.parametrize("place", PLACES)
async def test_nobody_reads_anything_however_the_path_is_written(queue: Queue, place: str) -> None:
    id = await planted(queue)
    put, prefix = PLACES[place]
    inner = dashboard(queue, access=Password("correct horse"), token=TOKEN)
    app = put(inner)
    files = (await ask(inner, b"/static/howdah.css")).body
    asked: set[tuple[str, str]] = set()
    for method, path in every_request(inner, id):
        if method != "HEAD":  # is answered as GET is
            asked |= {(method, one) for one in written(prefix + path)}
    assert len(asked) > 1500
    leaked: list[tuple[str, str, int]] = []
    for method, path in sorted(asked):
        answer = await ask(app, path.encode("ascii"), method)
        shown = answer.text
        public = answer.body in (b"", b"ok\n", files) or '<form class="card narrow"' in shown
        if (answer.status == 200 and not public) or answer.status >= 500 or PLANTED in shown:
            leaked.append((method, path, answer.status))
    assert leaked == []


@pytest.mark.parametrize("place", PLACES)
async def test_whoever_is_let_in_reads_it_in_every_place(queue: Queue, place: str) -> None:
    id = await planted(queue)
    put, prefix = PLACES[place]
    inner = dashboard(queue, access=OneTimeLink(), token=TOKEN)
    app = put(inner)
    found: dict[str, int] = {}
    for method, path in every_request(inner, id):
        if method == "GET" and path not in ("/enter", "/live", "/static/nothing"):
            found[path] = (await ask(app, (prefix + path).encode(), headers=PROGRAM)).status
    wrong = {path: status for path, status in found.items() if status != 200}
    # what shall be done is not said, and the worker has left
    assert wrong == {"/jobs/matching": 400, "/workers/w": 404}
    assert len(found) > 20
    for path in (f"/api/v1/jobs/{id}", f"/jobs/{id}"):
        assert PLANTED in (await ask(app, (prefix + path).encode(), headers=PROGRAM)).text
    body = b'{"job_type": "a/b", "data": {}}'
    json = {**PROGRAM, "content-type": "application/json"}
    made = await ask(app, f"{prefix}/api/v1/jobs".encode(), "POST", json, body)
    assert made.status == 201
    named = await ask(app, f"{prefix}/api/v1/types/a%2Fb".encode(), headers=PROGRAM)
    assert (named.status, '"job_type":"a/b"' in named.text) == (200, True)
    paused = await ask(app, f"{prefix}/api/v1/types/a%2Fb/pause".encode(), "POST", PROGRAM)
    assert paused.text == '{"changed":true}'


async def test_a_path_that_contradicts_itself_is_read_in_one_way(queue: Queue) -> None:
    """A middleware may change `path` and leave `raw_path`: then `path` holds, for all."""
    app = dashboard(queue, access=OneTimeLink(), token=TOKEN)
    for path, raw in product(("/static/howdah.css", "/api/v1/jobs"), repeat=2):
        scope: dict[str, Any] = {"path": path, "raw_path": raw.encode()}
        expected = 200 if path.startswith("/static") else 401
        assert (await ask(app, b"/", **scope)).status == expected
        assert (await ask(app, b"/", headers=PROGRAM, **scope)).status == 200
        assert (await ask(app, b"/", raw_path=None, path=path)).status == expected


# ── every route by itself ──


@pytest.mark.parametrize("way_in", WAYS_IN)
async def test_every_route_refuses_by_itself_whom_the_gate_did_not_let_in(
    queue: Queue, way_in: str
) -> None:
    id = await planted(queue)
    app = dashboard(queue, access=WAYS_IN[way_in]())
    closed = [one for one in app.routes if getattr(one, "path", "") not in PUBLIC]
    assert len(closed) > 30
    for route in closed:
        for method, path in paths_of(route, id):
            scope = {**scope_of(path.encode(), method), "app": app, "state": {"who": "ada"}}
            scope.update(route.matches(scope)[1])
            sent: list[Any] = []

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            async def receive() -> dict[str, Any]:
                return {"type": "http.request", "body": b"", "more_body": False}

            with pytest.raises(HTTPException) as refused:
                await route.handle(scope, receive, send)
            assert refused.value.status_code == 401, route
            assert sent == []


async def test_the_public_routes_are_those_and_come_first(queue: Queue) -> None:
    for way_in in WAYS_IN.values():
        app = dashboard(queue, access=way_in())
        public = [getattr(route, "path", "") in PUBLIC for route in app.routes]
        assert public[0]
        assert public == sorted(public, reverse=True)


@pytest.mark.parametrize("kind", ["websocket", "webtransport", "ftp"])
@pytest.mark.parametrize("path", ["/", "/live", "/static/howdah.js", "/login"])
async def test_nothing_but_http_passes(queue: Queue, kind: str, path: str) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": f"{kind}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = dashboard(queue, access=Mine(lambda _: "ada"))
    scope = {**scope_of(path.encode()), "type": kind}
    if kind == "websocket":
        await app(scope, receive, send)
        assert sent == [{"type": "websocket.close", "code": 1008}]
    else:
        with pytest.raises(RuntimeError, match=f"does not speak {kind}"):
            await app(scope, receive, send)
        assert sent == []


@pytest.mark.parametrize("put", [mounted, prefix_kept, prefix_cut])
async def test_a_real_server_shows_nobody_anything_either(
    queue: Queue, put: Callable[[ASGIApp], ASGIApp]
) -> None:
    await planted(queue)
    app = put(dashboard(queue, access=OneTimeLink(), token=TOKEN))
    async with served_app(app) as url, httpx.AsyncClient(base_url=url) as client:
        for path in ("/queue/api/v1/jobs", "/queue%2Fstatic/api/v1/jobs", "/static/api/v1/jobs"):
            assert (await client.get(path)).status_code in (401, 404), path
        assert (await client.get("/queue/api/v1/jobs", headers=PROGRAM)).status_code == 200
