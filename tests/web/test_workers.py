"""Workers: the state of each, its running jobs, and draining."""

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


async def insert_silent_worker(queue: Queue, id: str, info: str = "{}") -> None:
    await queue.store.fetch(SILENT, id, info)


async def test_a_worker_is_shown_with_its_jobs_and_stops_when_drained(
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

        questions: list[str] = []

        async def agree(dialog: Dialog) -> None:
            questions.append(dialog.message)
            await dialog.accept()

        page.on("dialog", agree)
        await card.get_by_role("button", name="Drain").click()
        await expect(page.locator(".flash")).to_have_text(f"{worker.id} ends its jobs and stops.")
        await expect(card.get_by_text("draining")).to_be_visible()
        await expect(card.get_by_role("button", name="Drain")).to_have_count(0)
        assert questions == [f"Ask {worker.id} to end its jobs and stop?"]
        go_on.set()
        await worker.stopping()
    await expect(card).to_have_count(0)
    await handle.result()


async def test_silent_and_foreign_workers_are_shown_separately(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await insert_silent_worker(queue, "sleeper", '{"host": "far", "slots": "many", "job_types": 7}')
    await queue.enqueue("letters")
    await queue.claim(["letters"], 1, worker_id="perl/5: <b>")

    @queue.job
    async def parcels() -> None: ...

    async with queue.worker() as worker:
        text = (await client.get("/workers")).text
    sections = re.split(r'<section data-key="([\w ]+)">', text)[1:]
    by_kind = dict(zip(sections[::2], sections[1::2], strict=True))
    assert list(by_kind) == ["At work", "Silent", "Foreign workers"]
    assert worker.id in by_kind["At work"]
    assert "sleeper" in by_kind["Silent"]
    assert "Silent for" in by_kind["Silent"]
    assert "perl/5: &lt;b&gt;" in by_kind["Foreign workers"]
    assert "send no heartbeats" in by_kind["Foreign workers"]
    assert [kind for kind in by_kind if "Drain" in by_kind[kind]] == ["At work"]


async def test_a_worker_with_any_name_has_a_page(client: httpx.AsyncClient, queue: Queue) -> None:
    await insert_silent_worker(queue, "a/b?c#d e")
    listed = await client.get("/workers")
    link = re.search(r'href="(/workers/[^"]+)"', listed.text)
    assert link is not None
    own = await client.get(link[1])
    assert own.status_code == 200
    assert "<h1>a/b?c#d e" in own.text
    gone = await client.get("/workers/nobody")
    assert gone.status_code == 404
    assert "it may have stopped" in gone.text


async def test_a_worker_that_has_stopped_cannot_be_drained(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await insert_silent_worker(queue, "sleeper")
    token = re.search(
        r'name="howdah-csrf-token" content="(\w+)"', (await client.get("/workers")).text
    )
    assert token is not None
    form = {"csrf_token": token[1], "worker": "sleeper"}
    answer = await client.post("/workers/drain", data=form, follow_redirects=True)
    assert "sleeper is not alive." in answer.text
    for worker in ("", "\0"):
        answer = await client.post(
            "/workers/drain", data={"csrf_token": token[1], "worker": worker}
        )
        assert answer.status_code == 400


async def test_without_workers_the_page_shows_how_to_start_one(client: httpx.AsyncClient) -> None:
    assert "howdah worker app:queue" in (await client.get("/workers")).text
