"""Auth middleware: no access without an identity, no CSRF, and security headers on every answer."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.async_api import Browser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from howdah import Queue, observe
from howdah.errors import BadInput
from howdah.web import AppAccess, OneTimeLink, Password, dashboard
from howdah.web.access import Access
from howdah.web.context import DashboardContext, Settings
from howdah.web.headers_middleware import HEADERS
from howdah.web.page import PageRoute
from howdah.web.request_body import FIELDS, LIMIT
from tests.support.postgres_server import PgServer
from tests.support.proxy import Proxy
from tests.support.waiting import eventually
from tests.web.serving import Served, open_access, served_app

PAUSE = "/types/letters/pause"
TOKEN = "the token of a program, 32 characters"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def client_of(
    queue: Queue, access: Access | None = None, **options: Any
) -> AsyncGenerator[httpx.AsyncClient]:
    """Yield an HTTP client of a dashboard without a server; by default access is open."""
    app = dashboard(queue, access=access or open_access(), **options)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def csrf_token_of(client: httpx.AsyncClient, **headers: str) -> str:
    text = (await client.get("/", headers=headers)).text
    return text.split('name="howdah-csrf-token" content="')[1].split('"')[0]


async def is_paused(queue: Queue) -> bool:
    return "letters" in await observe.paused(queue.store)


def every_request(app: Starlette) -> Iterator[tuple[str, str]]:
    """Yield the method and the path of every route of the app."""
    for route in app.routes:
        path = re.sub(r"\{[^}]*\}", "x", getattr(route, "path", "/"))
        if isinstance(route, Mount):
            yield "GET", f"{path}/x"
            yield "POST", f"{path}/x"
        else:
            assert isinstance(route, Route)
            for method in route.methods or {"GET", "POST"}:
                yield method, path


# ── access without a credential ──


@pytest.mark.parametrize(
    "access", [OneTimeLink(), Password("correct horse"), AppAccess(lambda _: None)]
)
async def test_every_route_refuses_a_request_without_a_credential(
    queue: Queue, access: Access
) -> None:
    app = dashboard(queue, access=access, token=TOKEN)
    login_routes = {"/link", "/login", "/logout", "/static/x", "/healthz", "/readyz"}
    requests = [request for request in every_request(app) if request[1] not in login_routes]
    assert len(requests) > 15
    async with client_of(queue, access, token=TOKEN) as client:
        for method, path in [*requests, ("GET", "/nothing"), ("PUT", "/jobs"), ("BREW", "/")]:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer"}):
                answer = await client.request(method, path, headers=headers)
                outcome = (answer.status_code, answer.headers.get("location"))
                assert outcome in [(401, None), (303, "/login")], (method, path)
                assert not re.search(r'name="howdah-csrf-token" content="\w', answer.text)


async def test_a_program_is_admitted_by_its_token(queue: Queue) -> None:
    async with client_of(queue, OneTimeLink(), token=TOKEN) as client:
        assert (await client.get("/", headers=BEARER)).status_code == 200
        assert (await client.post(PAUSE, headers=BEARER)).status_code == 303
        assert await is_paused(queue)
        for authorization in (
            "",
            "Bearer",
            "Bearer ",
            f"Bearer {TOKEN}x",
            f"Basic {TOKEN}",
            "Bearer é",
        ):
            headers = [(b"authorization", authorization.encode())]
            assert (await client.get("/", headers=headers)).status_code == 401


async def test_an_empty_token_admits_no_request_and_a_short_one_is_refused(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_WEB_TOKEN", "")
    async with client_of(queue, OneTimeLink()) as client:
        assert (await client.get("/", headers={"authorization": "Bearer "})).status_code == 401
    monkeypatch.setenv("HOWDAH_WEB_TOKEN", "short")
    with pytest.raises(BadInput, match="at least 32 characters"):
        dashboard(queue, access=OneTimeLink())


async def test_a_websocket_is_refused(queue: Queue) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = dashboard(queue, access=open_access())
    for path in ("/", "/live", "/static/howdah.js"):
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": path,
            "headers": [],
            "query_string": b"",
        }
        await app(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}] * 3


# ── the Host header ──


async def test_on_loopback_a_foreign_host_name_is_refused(queue: Queue) -> None:
    hosts = ("localhost", "127.0.0.1", "[::1]", "*.queue.example")
    async with client_of(queue, hosts=hosts) as client:

        async def status_for(host: str) -> int:
            return (await client.get("/", headers={"host": host})).status_code

        for host in ("localhost", "LOCALHOST:8420", "127.0.0.1:1", "[::1]:8420", "a.queue.example"):
            assert await status_for(host) == 200, host
        for host in (
            "evil.example",
            "localhost.evil.example",
            "[::2]",
            "",
            "[",
            "a b",
            "queue.example",
        ):
            assert await status_for(host) == 400, host
    async with client_of(queue) as client:
        assert await status_for("anything.example") == 200
        assert await status_for("[") == 400


# ── CSRF ──


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "http://localhost:9999"},
        {"origin": "http://localhost.evil.example"},
        {"origin": "null"},
        {"origin": "http://["},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "http://localhost"},
    ],
)
async def test_a_foreign_origin_cannot_act_even_with_the_csrf_token(
    queue: Queue, headers: dict[str, str]
) -> None:
    async with client_of(queue) as client:
        form = {"csrf_token": await csrf_token_of(client)}
        answer = await client.post(PAUSE, data=form, headers=headers)
    assert answer.status_code == 403
    assert "another site" in answer.text
    assert not await is_paused(queue)


@pytest.mark.parametrize("token", [None, "", "wrong", "ä" * 64, "0" * 64])
async def test_an_action_without_the_csrf_token_is_refused(queue: Queue, token: str | None) -> None:
    async with client_of(queue) as client:
        form = {} if token is None else {"csrf_token": token}
        answers = [await client.post(PAUSE, data=form)]
        if token is not None:
            headers = [(b"x-howdah-csrf-token", token.encode())]
            answers.append(await client.post(PAUSE, headers=headers))
    assert {answer.status_code for answer in answers} == {403}
    assert not await is_paused(queue)


async def test_the_csrf_token_of_another_user_is_refused(queue: Queue) -> None:
    access = AppAccess(lambda request: request.headers.get("x-me"))
    async with client_of(queue, access) as client:
        hers = await csrf_token_of(client, **{"x-me": "ada"})
        form = {"csrf_token": hers}
        assert (await client.post(PAUSE, data=form, headers={"x-me": "bob"})).status_code == 403
        assert not await is_paused(queue)
        assert (await client.post(PAUSE, data=form, headers={"x-me": "ada"})).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost"},
        {"sec-fetch-site": "same-origin"},
        # a proxy changed the Host header; Sec-Fetch-Site is still right
        {"sec-fetch-site": "same-origin", "origin": "https://queue.example"},
    ],
)
async def test_our_own_page_can_act(queue: Queue, headers: dict[str, str]) -> None:
    async with client_of(queue) as client:
        token = await csrf_token_of(client)
        assert (
            await client.post(PAUSE, data={"csrf_token": token}, headers=headers)
        ).status_code == 303
        assert await is_paused(queue)
        headers = {**headers, "x-howdah-csrf-token": token}
        await client.post("/types/letters/resume", headers=headers)
        assert not await is_paused(queue)


ATTACK = """<!doctype html><title>A nice picture</title>
<form id="form" method="post" action="{url}/types/letters/pause" target="there"></form>
<iframe name="there" src="{url}/"></iframe>
<script type="module">
const tried = [];
const to = "{url}/types/letters/pause";
const form = "application/x-www-form-urlencoded";
for (const ask of [
  {{ method: "POST", credentials: "include" }},
  {{ method: "POST", credentials: "include", mode: "no-cors" }},
  {{ method: "POST", credentials: "include", mode: "no-cors", body: "csrf_token=x",
     headers: {{ "content-type": form }} }},
  {{ method: "POST", credentials: "include", headers: {{ "x-howdah-csrf-token": "x" }} }},
  {{ method: "DELETE", credentials: "include" }},
]) tried.push(await fetch(to, ask).then((answer) => answer.type, () => "refused"));
const read = await fetch("{url}/", {{ credentials: "include" }}).then((a) => a.text(), () => "");
document.getElementById("form").submit();
const frame = document.querySelector("iframe");
await new Promise((done) => frame.addEventListener("load", done, {{ once: true }}));
document.body.dataset.tried = JSON.stringify({{ tried, read }});
</script>"""


async def test_a_foreign_page_in_a_browser_cannot_act_or_read(
    browser: Browser, web: Served, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    requests: list[str] = []

    async def attack(_: Request) -> HTMLResponse:
        return HTMLResponse(ATTACK.format(url=web.url))

    async with served_app(Starlette(routes=[Route("/", attack)])) as foreign_url:
        page = await browser.new_page()
        await page.goto(web.login_link)
        assert await page.title() == "Overview · howdah"
        page.on("request", lambda request: requests.append(f"{request.method} {request.url}"))
        with caplog.at_level(logging.INFO, "howdah.web"):
            await page.goto(foreign_url)  # the same site by its cookies, another origin by its port
            await page.wait_for_selector("body[data-tried]")
        outcome = await page.evaluate("JSON.parse(document.body.dataset.tried)")
        await page.close()
    assert outcome["read"] == ""
    assert set(outcome["tried"]) <= {"refused", "opaque"}
    assert sum(sent == f"POST {web.url}{PAUSE}" for sent in requests) >= 3
    assert not await is_paused(queue)
    assert "web.action" not in caplog.text


# ── read-only ──


async def test_read_only_refuses_every_unsafe_request(queue: Queue) -> None:
    app = dashboard(queue, access=open_access())
    unsafe = {
        (method, path)
        for method, path in every_request(app)
        if method not in ("GET", "HEAD", "OPTIONS") and not path.startswith("/static")
    }
    assert len(unsafe) > 5
    async with client_of(queue, read_only=True, token=TOKEN) as client:
        token = await csrf_token_of(client)
        for method, path in unsafe:
            for headers in ({"x-howdah-csrf-token": token}, BEARER):
                answer = await client.request(method, path, headers=headers)
                assert answer.status_code == 403, (method, path)
                assert "read-only" in answer.text
        for path in ("/", "/jobs", "/failures", "/workers", "/types", "/health"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert 'method="post"' not in answer.text
            assert "read-only" in answer.text


# ── every answer ──


async def broken(context: DashboardContext, request: Request) -> dict[str, Any]:
    raise ZeroDivisionError("a secret of the inside")


async def test_every_answer_has_its_headers(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    async with client_of(queue, Password("correct horse"), token=TOKEN) as client:
        answers = {
            200: await client.get("/", headers=BEARER),
            303: await client.get("/"),
            401: await client.post("/"),
            403: await client.post("/login", headers={"origin": "http://evil.example"}),
            404: await client.get("/nothing", headers=BEARER),
            405: await client.post("/", headers=BEARER),
            400: await client.get("/", headers={"host": "["}),
            413: await client.post("/login", content=b"x" * (LIMIT + 1)),
        }
        static = await client.get("/static/howdah.css")
        metrics = await client.get("/metrics", headers=BEARER)
        monkeypatch.setattr("howdah.web.page.render", None)
        answers[500] = await client.get("/", headers=BEARER)
    assert {status: answer.status_code for status, answer in answers.items()} == {
        status: status for status in answers
    }
    for answer in [*answers.values(), static, metrics]:
        assert {name: answer.headers.get(name) for name in HEADERS} == HEADERS, answer
    assert {answer.headers["cache-control"] for answer in answers.values()} == {"no-store"}
    assert (metrics.headers["cache-control"], static.headers["cache-control"]) == (
        "no-store",
        "no-cache",
    )


def test_only_our_own_scripts_run() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


async def test_an_internal_error_is_logged_and_not_shown_on_the_page(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = dashboard(queue, access=open_access())
    app.router.routes.insert(0, PageRoute("/broken", "overview.html", broken))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        page = await client.get("/broken")
        monkeypatch.setattr("howdah.web.errors.render", None)
        plain = await client.get("/broken")
    for answer in (page, plain):
        assert answer.status_code == 500
        assert "the dashboard has an error" in answer.text
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
    assert 'web.broken path="/broken"' in caplog.text
    assert "ZeroDivisionError: a secret of the inside" in caplog.text


async def test_a_response_that_fails_after_its_start_is_aborted(queue: Queue) -> None:
    app = dashboard(queue, access=open_access())

    async def half(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        raise ZeroDivisionError

    app.router.routes.insert(0, Mount("/half", half))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        with pytest.raises(ZeroDivisionError):
            await client.get("/half/")


# ── bodies ──


@pytest.mark.parametrize("path", [PAUSE, "/workers/drain"])
async def test_a_large_body_is_refused_before_it_is_read_completely(
    queue: Queue, path: str
) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 100_000
            yield b"x" * 100_000

    async def status_of(app: Any, headers: list[tuple[bytes, bytes]]) -> int:
        body, statuses = endless(), list[int]()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": await anext(body), "more_body": True}

        async def send(message: Any) -> None:
            statuses.extend([message["status"]] if "status" in message else [])

        scope: dict[str, Any] = {
            "type": "http",
            "method": "POST",
            "path": path,
            "query_string": b"",
            "headers": [(b"host", b"localhost"), *headers],
            "scheme": "http",
        }
        await app(scope, receive, send)
        return statuses[0]

    app = dashboard(queue, access=open_access(), token=TOKEN)
    for headers in ([], [(b"authorization", f"Bearer {TOKEN}".encode())]):
        sent = 0
        assert await status_of(app, headers) == 413
        assert LIMIT < sent <= LIMIT + 200_000


async def test_a_form_of_too_many_fields_is_refused(queue: Queue) -> None:
    async with client_of(queue) as client:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = await client.post(PAUSE, content="a&" * (FIELDS + 1), headers=headers)
    assert answer.status_code == 413


# ── the audit line ──


async def test_an_audit_line_is_one_line_for_any_names(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    name = 'a\nb\r\x1b[31m\u2028\x85\u202e"c" é'
    with caplog.at_level(logging.INFO, "howdah.web"):
        DashboardContext(queue, Settings()).audit(name, "cancel", name, moved=1)
    (line,) = caplog.messages
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    escaped = r'"a\nb\r\u001b[31m\u2028\u0085\u202e\"c\" é"'
    assert line == f'web.action who={escaped} did=cancel on={escaped} moved="1"'


async def test_an_action_is_logged_with_its_user(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(queue, AppAccess(lambda _: "ada")) as client:
        form = {"csrf_token": await csrf_token_of(client)}
        with caplog.at_level(logging.INFO, "howdah.web"):
            await client.post(PAUSE, data=form)
    assert 'web.action who="ada" did=pause on="letters" changed="True"' in caplog.messages


# ── the database ──


@pytest.mark.parametrize("path", ["/failures", "/workers", "/jobs"])
async def test_a_locked_database_gives_an_error_page_within_the_limit(
    queue: Queue, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(queue, within=timedelta(milliseconds=100)) as client:
        async with queue.store.acquire() as connection, connection.transaction():
            await connection.execute("lock table howdah.jobs, howdah.workers")
            answer = await client.get(path, timeout=20)
        assert (await client.get(path)).status_code == 200
    assert answer.status_code == 503
    assert "The database does not answer" in answer.text
    assert "within 0.1 s" in answer.text
    assert "Traceback" not in answer.text + caplog.text


async def test_a_database_that_does_not_answer_gives_an_error_page() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        queue = Queue(f"postgresql://x@127.0.0.1:{listener.getsockname()[1]}/x")
        limit = timedelta(milliseconds=50)
        async with client_of(queue, within=limit, read_only=True) as client:
            answer = await client.get("/workers", timeout=20)
    assert answer.status_code == 503
    assert "within 0.05 s" in answer.text


async def test_a_database_that_stops_answering_gives_an_error_page(tmp_path: Path) -> None:
    server = PgServer(tmp_path).make().start()
    with Proxy(server.port) as proxy:
        async with Queue(server.dsn("postgres", proxy.ports)) as queue:
            await queue.install()
            limit = timedelta(milliseconds=50)
            async with client_of(queue, within=limit, read_only=True) as client:

                async def answers() -> bool:  # a busy machine may need more than the limit
                    return (await client.get("/workers")).status_code == 200

                await eventually(answers, "the page is shown")
                proxy.held = True
                async with asyncio.timeout(15):  # the driver alone would wait for 30 s
                    answer = await client.get("/workers")
                proxy.held = False
                await eventually(answers, "the page is shown again")
    server.crash()
    assert answer.status_code == 503
    assert "within 0.05 s" in answer.text
