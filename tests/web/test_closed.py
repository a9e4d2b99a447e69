"""No route answers without a credential, in any spelling of its path."""

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
from howdah.web import AppAccess, OneTimeLink, Password, dashboard
from howdah.web.access import Access
from tests.web.raw_requests import DEPLOYMENTS, ask, mounted, prefix_cut, prefix_kept, scope_of
from tests.web.secret_job import SECRET_TEXT, make_secret_job
from tests.web.serving import served_app

TOKEN = "a token of a program, 32 characters long"
BEARER = {"authorization": f"Bearer {TOKEN}"}
PUBLIC = {"/login", "/logout", "/link", "/static", "/healthz", "/readyz"}  # public without a risk


def access_that_refuses() -> Access:
    return AppAccess(lambda _: None)


WAYS_IN = {
    "link": OneTimeLink,
    "password": lambda: Password("correct horse"),
    "refusing app": access_that_refuses,
}


def paths_of(route: BaseRoute, id: UUID) -> list[tuple[str, str]]:
    """Return methods and paths of a route, with values for its parameters."""
    values = {"id": str(id), "job_type": "letters", "worker_id": "w", "part": "data"}
    values |= {"limit": "api", "limit_name": "api", "schedule": "nightly"}
    if isinstance(route, Mount):
        return [("GET", f"{route.path}/howdah.css"), ("GET", f"{route.path}/nothing")]
    assert isinstance(route, Route), route
    path = re.sub(
        r"\{(\w+)[^}]*\}", lambda parameter: values.get(parameter[1], "cancel"), route.path
    )
    return [(method, path) for method in sorted(route.methods or {"GET", "POST"})]


def every_request(app: Starlette, id: UUID) -> list[tuple[str, str]]:
    """Return every request that a dashboard answers; new routes are included."""
    return [request for route in app.routes for request in paths_of(route, id)]


def spellings(path: str) -> Iterator[str]:
    """Yield other spellings of a path: each trick in each position."""
    yield path
    yield path.upper()
    yield path + "/"
    yield path + "%2F"
    yield path + "?page=/jobs"
    for at in (slash.start() for slash in re.finditer("/", path)):
        before, behind = path[:at], path[at + 1 :]
        for slash in ("%2F", "//", "/%2e/", "/..%2f", ";/", "/;", "%252F"):
            yield f"{before}{slash}{behind}"
        for way_around in ("/static/", "%2Fstatic/", "/static%2F", "/static/%2e%2e/", "/login/"):
            yield f"{before}{way_around}{behind}"
        yield f"{before}/{behind[:1].swapcase()}{behind[1:]}"
        if behind:
            yield f"{before}/%{ord(behind[0]):02x}{behind[1:]}"


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
async def test_no_spelling_of_a_path_answers_without_a_credential(
    queue: Queue, deployment: str
) -> None:
    id = await make_secret_job(queue)
    put, prefix = DEPLOYMENTS[deployment]
    inner = dashboard(queue, access=Password("correct horse"), token=TOKEN)
    app = put(inner)
    files = (await ask(inner, b"/static/howdah.css")).body
    requests: set[tuple[str, str]] = set()
    for method, path in every_request(inner, id):
        if method != "HEAD":  # has the same answer as GET
            requests |= {(method, spelling) for spelling in spellings(prefix + path)}
    assert len(requests) > 1500
    leaked: list[tuple[str, str, int]] = []
    for method, path in sorted(requests):
        answer = await ask(app, path.encode("ascii"), method)
        text = answer.text
        public = answer.body in (b"", b"ok\n", files) or '<form class="card narrow"' in text
        if (answer.status == 200 and not public) or answer.status >= 500 or SECRET_TEXT in text:
            leaked.append((method, path, answer.status))
    assert leaked == []


@pytest.mark.parametrize("deployment", DEPLOYMENTS)
async def test_an_authenticated_client_can_read_in_every_deployment(
    queue: Queue, deployment: str
) -> None:
    id = await make_secret_job(queue)
    put, prefix = DEPLOYMENTS[deployment]
    inner = dashboard(queue, access=OneTimeLink(), token=TOKEN)
    app = put(inner)
    statuses: dict[str, int] = {}
    for method, path in every_request(inner, id):
        if method == "GET" and path not in ("/link", "/live", "/static/nothing"):
            statuses[path] = (await ask(app, (prefix + path).encode(), headers=BEARER)).status
    wrong = {path: status for path, status in statuses.items() if status != 200}
    # the action is missing, and the worker has stopped
    assert wrong == {"/jobs/matching": 400, "/workers/w": 404}
    assert len(statuses) > 20
    for path in (f"/api/v1/jobs/{id}", f"/jobs/{id}"):
        assert SECRET_TEXT in (await ask(app, (prefix + path).encode(), headers=BEARER)).text
    body = b'{"job_type": "a/b", "data": {}}'
    json = {**BEARER, "content-type": "application/json"}
    created = await ask(app, f"{prefix}/api/v1/jobs".encode(), "POST", json, body)
    assert created.status == 201
    named = await ask(app, f"{prefix}/api/v1/types/a%2Fb".encode(), headers=BEARER)
    assert (named.status, '"job_type":"a/b"' in named.text) == (200, True)
    paused = await ask(app, f"{prefix}/api/v1/types/a%2Fb/pause".encode(), "POST", BEARER)
    assert paused.text == '{"changed":true}'


async def test_if_path_and_raw_path_differ_all_code_uses_path(queue: Queue) -> None:
    """A middleware may change `path` and leave `raw_path`; then `path` is used everywhere."""
    app = dashboard(queue, access=OneTimeLink(), token=TOKEN)
    for path, raw in product(("/static/howdah.css", "/api/v1/jobs"), repeat=2):
        scope: dict[str, Any] = {"path": path, "raw_path": raw.encode()}
        expected = 200 if path.startswith("/static") else 401
        assert (await ask(app, b"/", **scope)).status == expected
        assert (await ask(app, b"/", headers=BEARER, **scope)).status == 200
        assert (await ask(app, b"/", raw_path=None, path=path)).status == expected


# ── each route without the middleware ──


@pytest.mark.parametrize("way_in", WAYS_IN)
async def test_every_route_itself_refuses_an_unauthenticated_request(
    queue: Queue, way_in: str
) -> None:
    id = await make_secret_job(queue)
    app = dashboard(queue, access=WAYS_IN[way_in]())
    closed = [route for route in app.routes if getattr(route, "path", "") not in PUBLIC]
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


async def test_the_public_routes_come_first(queue: Queue) -> None:
    for way_in in WAYS_IN.values():
        app = dashboard(queue, access=way_in())
        public = [getattr(route, "path", "") in PUBLIC for route in app.routes]
        assert public[0]
        assert public == sorted(public, reverse=True)


@pytest.mark.parametrize("kind", ["websocket", "webtransport", "ftp"])
@pytest.mark.parametrize("path", ["/", "/live", "/static/howdah.js", "/login"])
async def test_only_http_is_served(queue: Queue, kind: str, path: str) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": f"{kind}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = dashboard(queue, access=AppAccess(lambda _: "ada"))
    scope = {**scope_of(path.encode()), "type": kind}
    if kind == "websocket":
        await app(scope, receive, send)
        assert sent == [{"type": "websocket.close", "code": 1008}]
    else:
        with pytest.raises(RuntimeError, match=f"does not support {kind}"):
            await app(scope, receive, send)
        assert sent == []


@pytest.mark.parametrize("put", [mounted, prefix_kept, prefix_cut])
async def test_a_real_server_also_refuses_requests_without_a_credential(
    queue: Queue, put: Callable[[ASGIApp], ASGIApp]
) -> None:
    await make_secret_job(queue)
    app = put(dashboard(queue, access=OneTimeLink(), token=TOKEN))
    async with served_app(app) as url, httpx.AsyncClient(base_url=url) as client:
        for path in ("/queue/api/v1/jobs", "/queue%2Fstatic/api/v1/jobs", "/static/api/v1/jobs"):
            assert (await client.get(path)).status_code in (401, 404), path
        assert (await client.get("/queue/api/v1/jobs", headers=BEARER)).status_code == 200
