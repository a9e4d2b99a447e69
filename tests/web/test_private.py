"""Private: what is hidden stays hidden on every way out, and nothing private is kept elsewhere."""

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
from howdah.web import Mine, Password, dashboard
from tests.web.forms import send
from tests.web.serving import anybody, served
from tests.web.test_closed import every_request

HIDDEN = "s3cret-of-the-card"
TOKEN = "a token of a program, 32 characters long"
PROGRAM = {"authorization": f"Bearer {TOKEN}"}
WORDS = "correct horse"


@asynccontextmanager
async def asking(queue: Queue, **options: Any) -> AsyncGenerator[httpx.AsyncClient]:
    app = dashboard(queue, access=options.pop("access", None) or anybody(), **options)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def lived(queue: Queue) -> UUID:
    """Leave a job with the value under a key in everything that is JSON."""
    value: dict[str, Any] = {"card": HIDDEN, "deep": [{"CARD": {"number": HIDDEN}}]}

    @queue.job(name="letters")
    async def letters(ctx: JobContext, card: str, deep: Any) -> dict[str, Any]:
        await ctx.emit("charged", {"card": card})
        return value

    handle = await queue.enqueue("letters", value)
    async with queue.worker() as worker:
        await worker.run_until_idle()
    await queue.store.fetch(  # as a foreign worker may write it
        "update howdah.jobs "
        "set errors = jsonb_build_array(jsonb_build_object('error', 'no', 'card', $2::text)) "
        "where id = $1",
        handle.id,
        HIDDEN,
    )
    return handle.id


# ── redaction ──


async def test_a_redacted_value_is_on_no_way_out(queue: Queue) -> None:
    id = await lived(queue)
    app = dashboard(queue, access=anybody(), redact=["card"])
    paths = [path for method, path in every_request(app, id) if method == "GET"]
    paths += [f"/jobs/{id}/result.json", f"/api/v1/jobs/{id}/events"]
    shown: dict[str, str] = {}
    async with asking(queue, redact=["card"]) as client, asking(queue) as open_client:
        for path in paths:
            if path not in ("/live", "/static/nothing"):
                shown[path] = (await client.get(path)).text
        assert HIDDEN in (await open_client.get(f"/api/v1/jobs/{id}")).text
    assert len(shown) > 20
    assert [path for path, text in shown.items() if HIDDEN in text] == []
    assert "•••" in shown[f"/jobs/{id}"]


async def test_a_redacted_value_is_not_in_a_live_page(queue: Queue) -> None:
    handle = await queue.enqueue("letters", {"card": HIDDEN, "to": "kim"})
    async with (
        served(queue, access=anybody(), redact=["card"]) as web,
        httpx.AsyncClient(base_url=web.url, timeout=20) as client,
        client.stream("GET", "/live", params={"page": f"/jobs/{handle.id}"}) as stream,
    ):
        assert stream.headers["cache-control"] == "no-store"
        drawn: list[str] = []
        async for line in stream.aiter_lines():
            drawn.append(line)
            if not line and any("kim" in one for one in drawn):
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
async def test_a_filter_does_not_find_out_a_redacted_value(queue: Queue, guess: str) -> None:
    await lived(queue)
    answers: list[tuple[int, str]] = []
    for said in (guess, guess.replace("s3cret", "wrong")):
        async with asking(queue, redact=["card"], token=TOKEN) as client:
            for path in ("/jobs", "/api/v1/jobs", "/api/v1/jobs/count"):
                answer = await client.get(path, params={"payload": said})
                told = answer.text.replace(said, "").replace(HIDDEN, "")
                answers.append((answer.status_code, str("/letters" in told or '"jobs":[{' in told)))
            body = {"filter": {"payload": [said]}}
            bulk = await client.post("/api/v1/bulk/delete", json=body, headers=PROGRAM)
            answers.append((bulk.status_code, "bulk"))
            fields = [("action", "delete"), ("payload", said)]
            answers.append(((await send(client, "/jobs/matching", fields)).status_code, "page"))
    half = len(answers) // 2
    assert answers[:half] == answers[half:]  # right or wrong, the answer is the same
    assert {status for status, what in answers if what in ("bulk", "page")} == {400}
    assert (await queue.counts())["letters"] == {State.COMPLETED: 1}


# ── what is left lying about ──


async def test_no_private_answer_is_kept_in_a_cache(queue: Queue) -> None:
    id = await lived(queue)
    app = dashboard(queue, access=anybody(), token=TOKEN)
    kept: list[str] = []
    async with asking(queue) as client:
        for method, path in every_request(app, id):
            if method == "GET" and path != "/live" and not path.startswith("/static"):
                answer = await client.get(path)
                if answer.headers["cache-control"] != "no-store":
                    kept.append(path)
        file = await client.get("/static/howdah.css")
    assert kept == []
    assert file.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "back", ["//evil.example", "https://evil.example", "\r\nset-cookie: a=b", "/\\evil.example"]
)
async def test_no_redirect_leads_to_another_site(queue: Queue, back: str) -> None:
    async with asking(queue, token=TOKEN) as client:
        found = [
            await send(client, "/jobs/act", [("back", back), ("action", "cancel")]),
            await client.post(
                f"/types/{httpx.QueryParams({'a': back})['a'].strip() or 'x'}/pause".replace(
                    "\r\n", "%0d%0a"
                ).replace("\\", "%5c"),
                headers=PROGRAM,
            ),
            await client.get("/jobs", params={"find": back}),
            await client.get("//evil.example/jobs/"),
        ]
    for answer in found:
        to = httpx.URL(answer.headers.get("location", "/"))
        assert to.host in ("", "localhost"), answer.headers
        assert not str(to).startswith(("//", "/\\"))
        assert "a=b" not in answer.headers.get("set-cookie", "").split("; ")


async def test_every_cookie_is_out_of_reach_of_scripts_and_of_clear_text(queue: Queue) -> None:
    async with asking(queue, access=Password(WORDS)) as client:
        form = {"user": "admin", "password": WORDS}
        entered = await client.post("https://localhost/login", data=form)
        pledge = (await client.get("https://localhost/")).text
        word = pledge.split('name="howdah-pledge" content="')[1].split('"')[0]
        acted = await client.post("https://localhost/types/a/pause", data={"pledge": word})
    cookies = [*entered.headers.get_list("set-cookie"), *acted.headers.get_list("set-cookie")]
    assert len(cookies) == 2
    for cookie in cookies:
        assert {"httponly", "secure"} <= {part.strip().lower() for part in cookie.split(";")}, (
            cookie
        )


@pytest.mark.parametrize("page", ["//[", "[", "http://[", "\0", "/jobs/%ff", "/live", "/login"])
async def test_a_stream_of_no_page_is_not_found(queue: Queue, page: str) -> None:
    async with asking(queue, access=Mine(lambda _: "ada")) as client:
        assert (await client.get("/live", params={"page": page})).status_code == 404


async def test_an_open_page_ends_when_its_session_is_left(queue: Queue) -> None:
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
            assert (await client.post("/leave")).status_code == 303
            await queue.enqueue("letters-after")
            async with asyncio.timeout(20):
                rest = [line async for line in lines]
    assert "letters-after" not in "".join(rest)
