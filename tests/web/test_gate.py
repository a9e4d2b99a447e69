"""Gate: no token no entry, no foreign page acts, and no answer without its headers."""

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
from howdah.web import Mine, OneTimeLink, Password, dashboard
from howdah.web.access import Access
from howdah.web.answer import HEADERS
from howdah.web.body import FIELDS, LIMIT
from howdah.web.desk import Desk, Settings
from howdah.web.page import Page
from tests.stories.proxy import Proxy
from tests.stories.server import PgServer
from tests.web.serving import Served, anybody, served_app

PAUSE = "/types/letters/pause"
TOKEN = "the token of a program, 32 characters"
PROGRAM = {"authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def entering(
    queue: Queue, access: Access | None = None, **options: Any
) -> AsyncGenerator[httpx.AsyncClient]:
    """HTTP to a dashboard without a server between; by default whoever asks is let in."""
    app = dashboard(queue, access=access or anybody(), **options)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def pledge_of(client: httpx.AsyncClient, **headers: str) -> str:
    text = (await client.get("/", headers=headers)).text
    return text.split('name="howdah-pledge" content="')[1].split('"')[0]


async def is_paused(queue: Queue) -> bool:
    return "letters" in await observe.paused(queue.store)


def every_request(app: Starlette) -> Iterator[tuple[str, str]]:
    """Return the method and the path of everything that the app answers."""
    for route in app.routes:
        path = re.sub(r"\{[^}]*\}", "x", getattr(route, "path", "/"))
        if isinstance(route, Mount):
            yield "GET", f"{path}/x"
            yield "POST", f"{path}/x"
        else:
            assert isinstance(route, Route)
            for method in route.methods or {"GET", "POST"}:
                yield method, path


# ── nobody gets in ──


@pytest.mark.parametrize("access", [OneTimeLink(), Password("correct horse"), Mine(lambda _: None)])
async def test_no_token_no_entry(queue: Queue, access: Access) -> None:
    app = dashboard(queue, access=access, token=TOKEN)
    doors = {"/enter", "/login", "/leave", "/static/x", "/healthz", "/readyz"}
    asked = [one for one in every_request(app) if one[1] not in doors]
    assert len(asked) > 15
    async with entering(queue, access, token=TOKEN) as client:
        for method, path in [*asked, ("GET", "/nothing"), ("PUT", "/jobs"), ("BREW", "/")]:
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer"}):
                answer = await client.request(method, path, headers=headers)
                let_in = (answer.status_code, answer.headers.get("location"))
                assert let_in in [(401, None), (303, "/login")], (method, path)
                assert not re.search(r'name="howdah-pledge" content="\w', answer.text)


async def test_a_program_enters_with_its_token_alone(queue: Queue) -> None:
    async with entering(queue, OneTimeLink(), token=TOKEN) as client:
        assert (await client.get("/", headers=PROGRAM)).status_code == 200
        assert (await client.post(PAUSE, headers=PROGRAM)).status_code == 303
        assert await is_paused(queue)
        for wrong in ("", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", "Bearer é"):
            headers = [(b"authorization", wrong.encode())]
            assert (await client.get("/", headers=headers)).status_code == 401


async def test_an_empty_token_opens_nothing_and_a_short_one_is_refused(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_WEB_TOKEN", "")
    async with entering(queue, OneTimeLink()) as client:
        assert (await client.get("/", headers={"authorization": "Bearer "})).status_code == 401
    monkeypatch.setenv("HOWDAH_WEB_TOKEN", "short")
    with pytest.raises(BadInput, match="32 characters at least"):
        dashboard(queue, access=OneTimeLink())


async def test_a_websocket_is_turned_away(queue: Queue) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    app = dashboard(queue, access=anybody())
    for path in ("/", "/live", "/static/howdah.js"):
        scope: dict[str, Any] = {
            "type": "websocket",
            "path": path,
            "headers": [],
            "query_string": b"",
        }
        await app(scope, receive, send)
    assert sent == [{"type": "websocket.close", "code": 1008}] * 3


# ── which host ──


async def test_on_loopback_no_foreign_name_leads_here(queue: Queue) -> None:
    hosts = ("localhost", "127.0.0.1", "[::1]", "*.queue.example")
    async with entering(queue, hosts=hosts) as client:

        async def called(host: str) -> int:
            return (await client.get("/", headers={"host": host})).status_code

        for host in ("localhost", "LOCALHOST:8420", "127.0.0.1:1", "[::1]:8420", "a.queue.example"):
            assert await called(host) == 200, host
        for host in (
            "evil.example",
            "localhost.evil.example",
            "[::2]",
            "",
            "[",
            "a b",
            "queue.example",
        ):
            assert await called(host) == 400, host
    async with entering(queue) as client:
        assert await called("anything.example") == 200
        assert await called("[") == 400


# ── who acts ──


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
async def test_a_foreign_origin_cannot_act_even_with_the_pledge(
    queue: Queue, headers: dict[str, str]
) -> None:
    async with entering(queue) as client:
        form = {"pledge": await pledge_of(client)}
        answer = await client.post(PAUSE, data=form, headers=headers)
    assert answer.status_code == 403
    assert "another site" in answer.text
    assert not await is_paused(queue)


@pytest.mark.parametrize("word", [None, "", "wrong", "ä" * 64, "0" * 64])
async def test_nobody_acts_without_the_pledge(queue: Queue, word: str | None) -> None:
    async with entering(queue) as client:
        form = {} if word is None else {"pledge": word}
        answers = [await client.post(PAUSE, data=form)]
        if word is not None:
            headers = [(b"x-howdah-pledge", word.encode())]
            answers.append(await client.post(PAUSE, headers=headers))
    assert {answer.status_code for answer in answers} == {403}
    assert not await is_paused(queue)


async def test_the_pledge_of_somebody_else_is_none(queue: Queue) -> None:
    access = Mine(lambda request: request.headers.get("x-me"))
    async with entering(queue, access) as client:
        hers = await pledge_of(client, **{"x-me": "ada"})
        form = {"pledge": hers}
        assert (await client.post(PAUSE, data=form, headers={"x-me": "bob"})).status_code == 403
        assert not await is_paused(queue)
        assert (await client.post(PAUSE, data=form, headers={"x-me": "ada"})).status_code == 303


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"origin": "http://localhost"},
        {"sec-fetch-site": "same-origin"},
        # a proxy changed the Host header; the browser still knows
        {"sec-fetch-site": "same-origin", "origin": "https://queue.example"},
    ],
)
async def test_a_page_of_ours_acts(queue: Queue, headers: dict[str, str]) -> None:
    async with entering(queue) as client:
        word = await pledge_of(client)
        assert (await client.post(PAUSE, data={"pledge": word}, headers=headers)).status_code == 303
        assert await is_paused(queue)
        headers = {**headers, "x-howdah-pledge": word}
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
  {{ method: "POST", credentials: "include", mode: "no-cors", body: "pledge=x",
     headers: {{ "content-type": form }} }},
  {{ method: "POST", credentials: "include", headers: {{ "x-howdah-pledge": "x" }} }},
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
    asked: list[str] = []

    async def attack(_: Request) -> HTMLResponse:
        return HTMLResponse(ATTACK.format(url=web.url))

    async with served_app(Starlette(routes=[Route("/", attack)])) as evil:
        page = await browser.new_page()
        await page.goto(web.entrance)
        assert await page.title() == "Overview · howdah"
        page.on("request", lambda request: asked.append(f"{request.method} {request.url}"))
        with caplog.at_level(logging.INFO, "howdah.web"):
            await page.goto(evil)  # the same site by its cookies, another origin by its port
            await page.wait_for_selector("body[data-tried]")
        found = await page.evaluate("JSON.parse(document.body.dataset.tried)")
        await page.close()
    assert found["read"] == ""
    assert set(found["tried"]) <= {"refused", "opaque"}
    assert sum(one == f"POST {web.url}{PAUSE}" for one in asked) >= 3
    assert not await is_paused(queue)
    assert "web.action" not in caplog.text


# ── read-only ──


async def test_read_only_refuses_every_unsafe_request(queue: Queue) -> None:
    app = dashboard(queue, access=anybody())
    unsafe = {
        (method, path)
        for method, path in every_request(app)
        if method not in ("GET", "HEAD", "OPTIONS") and not path.startswith("/static")
    }
    assert len(unsafe) > 5
    async with entering(queue, read_only=True, token=TOKEN) as client:
        word = await pledge_of(client)
        for method, path in unsafe:
            for headers in ({"x-howdah-pledge": word}, PROGRAM):
                answer = await client.request(method, path, headers=headers)
                assert answer.status_code == 403, (method, path)
                assert "read-only" in answer.text
        for path in ("/", "/jobs", "/failures", "/workers", "/types", "/health"):
            answer = await client.get(path)
            assert answer.status_code == 200
            assert 'method="post"' not in answer.text
            assert "read-only" in answer.text


# ── every answer ──


async def broken(desk: Desk, request: Request) -> dict[str, Any]:
    raise ZeroDivisionError("a secret of the inside")


async def test_every_answer_has_its_headers(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    async with entering(queue, Password("correct horse"), token=TOKEN) as client:
        answers = {
            200: await client.get("/", headers=PROGRAM),
            303: await client.get("/"),
            401: await client.post("/"),
            403: await client.post("/login", headers={"origin": "http://evil.example"}),
            404: await client.get("/nothing", headers=PROGRAM),
            405: await client.post("/", headers=PROGRAM),
            400: await client.get("/", headers={"host": "["}),
            413: await client.post("/login", content=b"x" * (LIMIT + 1)),
        }
        static = await client.get("/static/howdah.css")
        metrics = await client.get("/metrics", headers=PROGRAM)
        monkeypatch.setattr("howdah.web.page.draw.render", None)
        answers[500] = await client.get("/", headers=PROGRAM)
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


def test_no_script_runs_but_our_own() -> None:
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


async def test_a_mistake_of_ours_is_told_in_the_log_and_not_on_the_page(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    app = dashboard(queue, access=anybody())
    app.router.routes.insert(0, Page("/broken", "overview.html", broken))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        page = await client.get("/broken")
        monkeypatch.setattr("howdah.web.refusal.render", None)
        plain = await client.get("/broken")
    for answer in (page, plain):
        assert answer.status_code == 500
        assert "the dashboard made a mistake" in answer.text
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
    assert 'web.broken path="/broken"' in caplog.text
    assert "ZeroDivisionError: a secret of the inside" in caplog.text


async def test_an_answer_that_has_begun_is_ended_when_it_goes_wrong(queue: Queue) -> None:
    app = dashboard(queue, access=anybody())

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
async def test_a_large_body_is_refused_before_it_is_read_to_its_end(
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

    app = dashboard(queue, access=anybody(), token=TOKEN)
    for headers in ([], [(b"authorization", f"Bearer {TOKEN}".encode())]):
        sent = 0
        assert await status_of(app, headers) == 413
        assert LIMIT < sent <= LIMIT + 200_000


async def test_a_form_of_too_many_fields_is_refused(queue: Queue) -> None:
    async with entering(queue) as client:
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = await client.post(PAUSE, content="a&" * (FIELDS + 1), headers=headers)
    assert answer.status_code == 413


# ── the audit line ──


async def test_an_audit_line_is_one_line_whatever_the_names_are(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    wild = 'a\nb\r\x1b[31m\u2028\x85\u202e"c" é'
    with caplog.at_level(logging.INFO, "howdah.web"):
        Desk(queue, Settings()).note(wild, "cancel", wild, moved=1)
    (line,) = caplog.messages
    assert len(line.splitlines()) == 1
    assert line.isprintable()
    said = r'"a\nb\r\u001b[31m\u2028\u0085\u202e\"c\" é"'
    assert line == f'web.action who={said} did=cancel on={said} moved="1"'


async def test_an_action_leaves_a_line_with_who_did_it(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    async with entering(queue, Mine(lambda _: "ada")) as client:
        form = {"pledge": await pledge_of(client)}
        with caplog.at_level(logging.INFO, "howdah.web"):
            await client.post(PAUSE, data=form)
    assert 'web.action who="ada" did=pause on="letters" changed="True"' in caplog.messages


# ── the database ──


@pytest.mark.parametrize("path", ["/failures", "/workers", "/jobs"])
async def test_a_locked_database_gives_a_calm_page_within_the_limit(
    queue: Queue, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with entering(queue, within=timedelta(milliseconds=100)) as client:
        async with queue.store.acquire() as connection, connection.transaction():
            await connection.execute("lock table howdah.jobs, howdah.workers")
            answer = await client.get(path, timeout=20)
        assert (await client.get(path)).status_code == 200
    assert answer.status_code == 503
    assert "The database does not answer" in answer.text
    assert "within 0.1 s" in answer.text
    assert "Traceback" not in answer.text + caplog.text


async def test_a_database_that_does_not_answer_at_all_gives_a_calm_page_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        queue = Queue(f"postgresql://x@127.0.0.1:{deaf.getsockname()[1]}/x")
        limit = timedelta(milliseconds=50)
        async with entering(queue, within=limit, read_only=True) as client:
            answer = await client.get("/workers", timeout=20)
    assert answer.status_code == 503
    assert "within 0.05 s" in answer.text


async def test_a_database_that_falls_silent_gives_a_calm_page_too(tmp_path: Path) -> None:
    server = PgServer(tmp_path).make().start()
    with Proxy(server.port) as proxy:
        async with Queue(server.dsn("postgres", proxy.ports)) as queue:
            await queue.install()
            limit = timedelta(milliseconds=50)
            async with entering(queue, within=limit, read_only=True) as client:
                assert (await client.get("/workers")).status_code == 200
                proxy.held = True
                async with asyncio.timeout(15):  # the driver alone would wait for 30 s
                    answer = await client.get("/workers")
                proxy.held = False
                assert (await client.get("/workers")).status_code == 200
    server.crash()
    assert answer.status_code == 503
    assert "within 0.05 s" in answer.text
