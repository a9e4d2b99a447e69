"""Redacted values appear in no answer, and no private answer is cached or leaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest

from howdah import JobContext, Queue
from howdah.states import State
from howdah.web import AppAccess, Password, dashboard
from tests.web.forms import send
from tests.web.serving import open_access, served
from tests.web.test_closed import every_request

HIDDEN = "s3cret-of-the-card"
TOKEN = "a token of a program, 32 characters long"
BEARER = {"authorization": f"Bearer {TOKEN}"}
WORDS = "correct horse"


@asynccontextmanager
async def client_of(queue: Queue, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    app = dashboard(queue, access=options.pop("access", None) or open_access(), **options)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def make_finished_job(queue: Queue) -> UUID:
    """Make a finished job with the redacted value in its payload, result, errors and events."""
    value: dict[str, Any] = {"card": HIDDEN, "deep": [{"CARD": {"number": HIDDEN}}]}

    @queue.job(name="letters")
    async def letters(ctx: JobContext, card: str, deep: Any) -> dict[str, Any]:
        await ctx.emit("charged", {"card": card})
        return value

    handle = await queue.enqueue("letters", value)
    async with queue.worker() as worker:
        await worker.run_until_idle()
    await queue.store.fetch(  # a foreign worker may write this
        "update howdah.jobs "
        "set errors = jsonb_build_array(jsonb_build_object('error', 'no', 'card', $2::text)) "
        "where id = $1",
        handle.id,
        HIDDEN,
    )
    return handle.id


# ── redaction ──


async def test_a_redacted_value_is_in_no_answer(queue: Queue) -> None:
    id = await make_finished_job(queue)
    app = dashboard(queue, access=open_access(), redact=["card"])
    paths = [path for method, path in every_request(app, id) if method == "GET"]
    paths += [f"/jobs/{id}/result.json", f"/api/v1/jobs/{id}/events"]
    answers: dict[str, str] = {}
    async with client_of(queue, redact=["card"]) as client, client_of(queue) as open_client:
        for path in paths:
            if path not in ("/live", "/static/nothing"):
                answers[path] = (await client.get(path)).text
        assert HIDDEN in (await open_client.get(f"/api/v1/jobs/{id}")).text
    assert len(answers) > 20
    assert [path for path, text in answers.items() if HIDDEN in text] == []
    assert "•••" in answers[f"/jobs/{id}"]


async def test_a_redacted_value_is_not_in_a_live_page(queue: Queue) -> None:
    handle = await queue.enqueue("letters", {"card": HIDDEN, "to": "kim"})
    async with (
        served(queue, access=open_access(), redact=["card"]) as web,
        httpx.AsyncClient(base_url=web.url, timeout=20) as client,
        client.stream("GET", "/live", params={"page": f"/jobs/{handle.id}"}) as stream,
    ):
        assert stream.headers["cache-control"] == "no-store"
        drawn: list[str] = []
        async for line in stream.aiter_lines():
            drawn.append(line)
            if not line and any("kim" in text for text in drawn):
                break
    assert HIDDEN not in "".join(drawn)


@pytest.mark.parametrize(
    "guess",
    [
        f"card={HIDDEN}",
        f"CARD={HIDDEN}",
        f'deep=[{{"CARD": {{"number": "{HIDDEN}"}}}}]',
        f'deep=[{{"\\u0063ard": "{HIDDEN}"}}]',
    ],
)
async def test_a_filter_does_not_reveal_a_redacted_value(queue: Queue, guess: str) -> None:
    await make_finished_job(queue)
    answers: list[tuple[int, str]] = []
    for payload_filter in (guess, guess.replace("s3cret", "wrong")):
        async with client_of(queue, redact=["card"], token=TOKEN) as client:
            for path in ("/jobs", "/api/v1/jobs", "/api/v1/jobs/count"):
                answer = await client.get(path, params={"payload": payload_filter})
                text = answer.text.replace(payload_filter, "").replace(HIDDEN, "")
                answers.append((answer.status_code, str("/letters" in text or '"jobs":[{' in text)))
            body = {"filter": {"payload": [payload_filter]}}
            bulk = await client.post("/api/v1/bulk/delete", json=body, headers=BEARER)
            answers.append((bulk.status_code, "bulk"))
            fields = [("action", "delete"), ("payload", payload_filter)]
            answers.append(((await send(client, "/jobs/matching", fields)).status_code, "page"))
    half = len(answers) // 2
    assert answers[:half] == answers[half:]  # right or wrong, the answer is the same
    assert {status for status, kind in answers if kind in ("bulk", "page")} == {400}
    assert (await queue.counts())["letters"] == {State.COMPLETED: 1}


# ── caches, redirects, cookies, streams ──


async def test_no_private_answer_may_be_cached(queue: Queue) -> None:
    id = await make_finished_job(queue)
    app = dashboard(queue, access=open_access(), token=TOKEN)
    cacheable: list[str] = []
    async with client_of(queue) as client:
        for method, path in every_request(app, id):
            if method == "GET" and path != "/live" and not path.startswith("/static"):
                answer = await client.get(path)
                if answer.headers["cache-control"] != "no-store":
                    cacheable.append(path)
        file = await client.get("/static/howdah.css")
    assert cacheable == []
    assert file.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "\r\nset-cookie: a=b", "/\\evil.example"]
)
async def test_no_redirect_leads_to_another_site(queue: Queue, back: str) -> None:
    async with client_of(queue, token=TOKEN) as client:
        answers = [
            await send(client, "/jobs/act", [("back", back), ("action", "cancel")]),
            await client.post(
                f"/types/{httpx.QueryParams({'a': back})['a'].strip() or 'x'}/pause".replace(
                    "\r\n", "%0d%0a"
                ).replace("\\", "%5c"),
                headers=BEARER,
            ),
            await client.get("/jobs", params={"find": back}),
            await client.get("//evil.example/jobs/"),
        ]
    for answer in answers:
        to = httpx.URL(answer.headers.get("location", "/"))
        assert to.host in ("", "localhost"), answer.headers
        assert not str(to).startswith(("//", "/\\"))
        assert "a=b" not in answer.headers.get("set-cookie", "").split("; ")


async def test_every_cookie_is_http_only_and_secure(queue: Queue) -> None:
    async with client_of(queue, access=Password(WORDS)) as client:
        form = {"user": "admin", "password": WORDS}
        login = await client.post("https://localhost/login", data=form)
        csrf_token = (await client.get("https://localhost/")).text
        token = csrf_token.split('name="howdah-csrf-token" content="')[1].split('"')[0]
        acted = await client.post("https://localhost/types/a/pause", data={"csrf_token": token})
    cookies = [*login.headers.get_list("set-cookie"), *acted.headers.get_list("set-cookie")]
    assert len(cookies) == 2
    for cookie in cookies:
        assert {"httponly", "secure"} <= {part.strip().lower() for part in cookie.split(";")}, (
            cookie
        )


@pytest.mark.parametrize("page", ["//[", "[", "http://[", "\0", "/jobs/%ff", "/live", "/login"])
async def test_a_stream_of_an_unknown_page_is_not_found(queue: Queue, page: str) -> None:
    async with client_of(queue, access=AppAccess(lambda _: "ada")) as client:
        assert (await client.get("/live", params={"page": page})).status_code == 404


async def test_an_open_page_ends_when_its_session_logs_out(queue: Queue) -> None:
    async with (
        served(queue, access=Password(WORDS)) as web,
        httpx.AsyncClient(base_url=web.url, timeout=20) as client,
    ):
        await client.post("/login", data={"user": "admin", "password": WORDS})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        headers = {"cookie": cookie}
        async with client.stream("GET", "/live", params={"page": "/"}, headers=headers) as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "event: draw"
            assert (await client.post("/logout")).status_code == 303
            await queue.enqueue("letters-after")
            async with asyncio.timeout(20):
                rest = [line async for line in lines]
    assert "letters-after" not in "".join(rest)
