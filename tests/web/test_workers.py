"""Workers: how each is, what it runs now, and that it leaves when it is asked to."""

from __future__ import annotations

import asyncio
import re

import httpx
from playwright.async_api import Dialog, Page, expect

from howdah import JobContext, Queue
from tests.web.axe import axe_finds_nothing
from tests.web.serving import Served

SILENT = """
    insert into howdah.workers (id, started_at, beat_at, steady_since, silent_after, info)
    values ($1, now() - interval '2 h', now() - interval '3 min', now(), interval '15 s', $2)
"""


async def silent(queue: Queue, id: str, info: str = "{}") -> None:
    await queue.store.fetch(SILENT, id, info)


async def test_a_worker_is_shown_with_what_it_runs_and_leaves_when_drained(
    page: Page, web: Served, queue: Queue
) -> None:
    go_on = asyncio.Event()

    @queue.job
    async def encode(ctx: JobContext) -> None:
        await ctx.progress(40, "reading frames")
        await go_on.wait()

    handle = await encode.enqueue()
    async with queue.worker(concurrency=7) as worker:
        await page.goto(web.url + "/workers")
        card = page.locator("article", has=page.get_by_role("link", name=worker.id))
        await expect(card).to_contain_text("1 of 7")
        await expect(card).to_contain_text("40%")
        await expect(card).to_contain_text("reading frames")
        for name in ("Heartbeat", "Host", "Process", "Version"):
            await expect(card.get_by_text(name, exact=True)).to_be_visible()
        await expect(card.locator(".runs").get_by_role("link", name="encode")).to_have_attribute(
            "href", f"/jobs/{handle.id}"
        )
        await axe_finds_nothing(page)

        asked: list[str] = []

        async def agree(dialog: Dialog) -> None:
            asked.append(dialog.message)
            await dialog.accept()

        page.on("dialog", agree)
        await card.get_by_role("button", name="Drain").click()
        await expect(page.locator(".said")).to_have_text(f"{worker.id} ends its jobs and leaves.")
        await expect(card.get_by_text("leaving")).to_be_visible()
        await expect(card.get_by_role("button", name="Drain")).to_have_count(0)
        assert asked == [f"Ask {worker.id} to end its jobs and leave?"]
        go_on.set()
        await worker.stopping()
    await expect(card).to_have_count(0)
    await handle.result()


async def test_the_silent_and_those_of_another_make_are_told_apart(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await silent(queue, "sleeper", '{"host": "far", "slots": "many", "job_types": 7}')
    await queue.enqueue("letters")
    await queue.claim(["letters"], 1, worker_id="perl/5: <b>")

    @queue.job
    async def parcels() -> None: ...

    async with queue.worker() as worker:
        text = (await client.get("/workers")).text
    sections = re.split(r'<section data-key="([\w ]+)">', text)[1:]
    found = dict(zip(sections[::2], sections[1::2], strict=True))
    assert list(found) == ["At work", "Silent", "Foreign workers"]
    assert worker.id in found["At work"]
    assert "sleeper" in found["Silent"]
    assert "Silent for" in found["Silent"]
    assert "perl/5: &lt;b&gt;" in found["Foreign workers"]
    assert "send no heartbeats" in found["Foreign workers"]
    assert [kind for kind in found if "Drain" in found[kind]] == ["At work"]


async def test_a_worker_has_a_page_whatever_it_is_called(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await silent(queue, "a/b?c#d e")
    listed = await client.get("/workers")
    found = re.search(r'href="(/workers/[^"]+)"', listed.text)
    assert found is not None
    own = await client.get(found[1])
    assert own.status_code == 200
    assert "<h1>a/b?c#d e" in own.text
    gone = await client.get("/workers/nobody")
    assert gone.status_code == 404
    assert "it may have left" in gone.text


async def test_a_worker_that_is_gone_cannot_be_drained(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await silent(queue, "sleeper")
    found = re.search(r'name="howdah-pledge" content="(\w+)"', (await client.get("/workers")).text)
    assert found is not None
    form = {"pledge": found[1], "worker": "sleeper"}
    answer = await client.post("/workers/drain", data=form, follow_redirects=True)
    assert "sleeper is not alive to hear it." in answer.text
    for worker in ("", "\0"):
        answer = await client.post("/workers/drain", data={"pledge": found[1], "worker": worker})
        assert answer.status_code == 400


async def test_without_any_worker_it_says_how_to_start_one(client: httpx.AsyncClient) -> None:
    assert "howdah worker app:queue" in (await client.get("/workers")).text
