"""Types: what each does, why its jobs wait, and a pause that holds."""

from __future__ import annotations

import re
from datetime import timedelta
from urllib.parse import quote

import httpx
import pytest
from playwright.async_api import Page, expect

from howdah import Priority, Queue, observe
from howdah.states import State
from tests.support.waiting import eventually
from tests.web.rows import figures, row
from tests.web.serving import Served, served

ODD = "a/b?c=d&e#f <b>g</b>/é"


async def test_the_list_shows_the_mix_of_priorities(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    for priority, jobs in ((Priority.EXPLICIT, 1), (Priority.DISCOVERED, 3), (7, 2)):
        await queue.enqueue_many(queue.draft("letters", priority=priority) for _ in range(jobs))
    shown = (await client.get("/types")).text
    in_line = row(shown, "letters")["In line, by priority"]
    assert in_line.endswith("150 (explicit): 1 · 100 (discovered): 3 · 7: 2")
    assert 'aria-label="150 (explicit): 1, 100 (discovered): 3, 7: 2"' in shown


async def test_what_finished_today_is_told(client: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def flaky(n: int) -> None:
        if n == 0:
            raise ValueError("no")

    await flaky.enqueue_many(flaky.draft(n=n) for n in range(4))
    async with queue.worker():

        async def ended() -> bool:
            seen = await observe.overview(queue.store, trend=False)
            return sum(seen.types[0].finished.values()) == 4

        await eventually(ended)
    shown = (await client.get("/types")).text
    assert row(shown, "flaky")["Finished today"] == "3 completed1 failed"
    one = (await client.get("/types/flaky")).text
    assert 'href="/jobs?job_type=flaky&amp;status=failed"' in one
    assert 'href="/failures?type=flaky"' in one


async def test_an_unknown_type_is_not_found(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters")
    assert (await client.get("/types/letters")).status_code == 200
    refused = await client.get("/types/parcels")
    assert refused.status_code == 404
    assert "no job of the type parcels is or was here" in refused.text


async def test_an_empty_queue_has_no_types(client: httpx.AsyncClient) -> None:
    assert "No type is known here" in (await client.get("/types")).text


async def test_a_type_says_why_its_jobs_wait(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters", delay=timedelta(hours=2))
    await queue.enqueue("letters", priority=Priority.EXPLICIT)
    shown = (await client.get("/types/letters")).text
    told = await observe.why_type(queue.store, "letters")
    assert "Why its jobs wait" in shown
    assert told.sentence in shown
    assert "No live worker knows the type letters" in told.sentence
    said = figures(shown)
    assert said["waiting"] == "1"
    assert said["scheduled, next in 1h 59m"] == "1"


async def test_pausing_is_told_and_leaves_an_audit_line(
    client: httpx.AsyncClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue(ODD)
    caplog.set_level("INFO", "howdah.web")
    path = f"/types/{quote(ODD)}"
    pledge = await _pledge(client)
    sent = {"pledge": pledge, "reason": "  no\nstamps "}
    answer = await client.post(f"{path}/pause", data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert (await observe.paused(queue.store))[ODD].reason == "no stamps"
    (line,) = [said for said in caplog.messages if said.startswith("web.action")]
    assert re.fullmatch(r'web.action who="[^"]+" did=pause on="(.*)" changed="True"', line)
    assert ODD in line
    again = await client.get(path)
    assert "&lt;b&gt;g&lt;/b&gt;/é is paused." in again.text
    assert "<b>g" not in again.text
    answer = await client.post(f"{path}/resume", data={"pledge": pledge, "back": "list"})
    assert answer.headers["location"] == "/types"
    assert await observe.paused(queue.store) == {}


async def _pledge(client: httpx.AsyncClient) -> str:
    shown = (await client.get("/types")).text
    return shown.split('name="howdah-pledge" content="')[1].split('"')[0]


async def test_in_read_only_mode_there_is_no_button(queue: Queue, page: Page) -> None:
    await queue.enqueue("letters")
    async with served(queue, read_only=True) as where:
        await page.goto(where.entrance)
        await page.goto(f"{where.url}/types")
        await expect(page.get_by_role("link", name="letters")).to_be_visible()
        await expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        await page.goto(f"{where.url}/types/letters")
        await expect(page.get_by_role("heading", name="letters")).to_be_visible()
        await expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        await page.goto("about:blank")  # so that no stream is cut off


async def test_a_pause_holds_in_a_live_worker_until_it_is_taken_back(
    page: Page, web: Served, queue: Queue
) -> None:
    """The brake is another type: once it has run, the worker has claimed since the pause."""

    @queue.job
    async def letters() -> None: ...

    @queue.job
    async def brake() -> None: ...

    async with queue.worker():
        await (await letters.enqueue()).result()
        await page.goto(f"{web.url}/types")
        await page.get_by_label("Reason to pause letters").fill("no stamps")
        await page.get_by_role("button", name="Pause letters").click()
        await expect(page.get_by_text("letters is paused.")).to_be_visible()
        held = await letters.enqueue()
        await (await brake.enqueue()).result()
        assert (await held.job()).status is State.PENDING
        await page.goto(f"{web.url}/types/letters")
        await expect(page.locator("#why")).to_contain_text("is paused since")
        await expect(page.locator("#why")).to_contain_text("no stamps")
        await page.get_by_role("button", name="Resume letters").click()
        await held.result()
        await expect(page.get_by_text("letters goes on.")).to_be_visible()
        await expect(page.locator("#why")).to_contain_text("stands in line", timeout=15_000)


async def test_a_type_of_any_name_has_a_live_page(page: Page, web: Served, queue: Queue) -> None:
    await queue.enqueue(ODD)
    await page.goto(f"{web.url}/types")
    await page.get_by_role("link", name=ODD).click()
    await expect(page.get_by_role("heading", level=1)).to_contain_text(ODD)
    waiting = page.locator(".figures div", has_text="waiting").locator("dd")
    await expect(waiting).to_have_text("1")
    await queue.enqueue(ODD)
    await expect(waiting).to_have_text("2", timeout=15_000)
