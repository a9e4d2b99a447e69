"""Types: the list, the page of a type with the reason why its jobs wait, and pauses."""

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
from tests.web.html_tables import figures, row
from tests.web.serving import Served, served

ODD = "a/b?c=d&e#f <b>g</b>/é"


async def test_the_list_shows_the_mix_of_priorities(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    for priority, jobs in ((Priority.EXPLICIT, 1), (Priority.DISCOVERED, 3), (7, 2)):
        await queue.enqueue_many(queue.draft("letters", priority=priority) for _ in range(jobs))
    html = (await client.get("/types")).text
    in_line = row(html, "letters")["In line, by priority"]
    assert in_line.endswith("150 (explicit): 1 · 100 (discovered): 3 · 7: 2")
    assert 'aria-label="150 (explicit): 1, 100 (discovered): 3, 7: 2"' in html


async def test_the_jobs_finished_today_are_shown(client: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job(max_attempts=1)
    async def flaky(n: int) -> None:
        if n == 0:
            raise ValueError("no")

    await flaky.enqueue_many(flaky.draft(n=n) for n in range(4))
    async with queue.worker():

        async def all_finished() -> bool:
            overview = await observe.overview(queue.store, trend=False)
            return sum(overview.types[0].finished.values()) == 4

        await eventually(all_finished)
    list_html = (await client.get("/types")).text
    assert row(list_html, "flaky")["Finished today"] == "3 completed1 failed"
    type_html = (await client.get("/types/flaky")).text
    assert 'href="/jobs?job_type=flaky&amp;status=failed"' in type_html
    assert 'href="/failures?type=flaky"' in type_html


async def test_an_unknown_type_is_not_found(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters")
    assert (await client.get("/types/letters")).status_code == 200
    refused = await client.get("/types/parcels")
    assert refused.status_code == 404
    assert "the type parcels is unknown" in refused.text


async def test_an_empty_queue_has_no_types(client: httpx.AsyncClient) -> None:
    assert "No type is known" in (await client.get("/types")).text


async def test_a_type_shows_why_its_jobs_wait(client: httpx.AsyncClient, queue: Queue) -> None:
    await queue.enqueue("letters", delay=timedelta(hours=2))
    await queue.enqueue("letters", priority=Priority.EXPLICIT)
    html = (await client.get("/types/letters")).text
    why = await observe.why_type(queue.store, "letters")
    assert "Why its jobs wait" in html
    assert why.sentence in html
    assert "No live worker knows the type letters" in why.sentence
    by_name = figures(html)
    assert by_name["waiting"] == "1"
    assert by_name["scheduled, next in 1h 59m"] == "1"


async def test_a_pause_is_shown_and_logged(
    client: httpx.AsyncClient, queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    await queue.enqueue(ODD)
    caplog.set_level("INFO", "howdah.web")
    path = f"/types/{quote(ODD)}"
    csrf_token = await _csrf_token(client)
    sent = {"csrf_token": csrf_token, "reason": "  no\nstamps "}
    answer = await client.post(f"{path}/pause", data=sent)
    assert (answer.status_code, answer.headers["location"]) == (303, path)
    assert (await observe.paused(queue.store))[ODD].reason == "no stamps"
    (line,) = [message for message in caplog.messages if message.startswith("web.action")]
    assert re.fullmatch(r'web.action who="[^"]+" did=pause on="(.*)" changed="True"', line)
    assert ODD in line
    again = await client.get(path)
    assert "&lt;b&gt;g&lt;/b&gt;/é is paused." in again.text
    assert "<b>g" not in again.text
    answer = await client.post(f"{path}/resume", data={"csrf_token": csrf_token, "back": "list"})
    assert answer.headers["location"] == "/types"
    assert await observe.paused(queue.store) == {}


async def _csrf_token(client: httpx.AsyncClient) -> str:
    html = (await client.get("/types")).text
    return html.split('name="howdah-csrf-token" content="')[1].split('"')[0]


async def test_in_read_only_mode_there_is_no_button(queue: Queue, page: Page) -> None:
    await queue.enqueue("letters")
    async with served(queue, read_only=True) as running:
        await page.goto(running.login_link)
        await page.goto(f"{running.url}/types")
        await expect(page.get_by_role("link", name="letters")).to_be_visible()
        await expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        await page.goto(f"{running.url}/types/letters")
        await expect(page.get_by_role("heading", name="letters")).to_be_visible()
        await expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        await page.goto("about:blank")  # so that no stream is cut off


async def test_a_live_worker_obeys_a_pause_until_it_is_resumed(
    page: Page, web: Served, queue: Queue
) -> None:
    """A job of another type proves that the worker has claimed since the pause."""

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
        await expect(page.get_by_text("letters is resumed.")).to_be_visible()
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


MEDIA = """select howdah.register_job_types('me', '[{"name": "resize", "queue": "me<dia"}]')"""


async def test_queues_are_shown_and_filter_the_list(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("resize")
    await queue.enqueue("letters")
    assert 'id="queues"' not in (await client.get("/types")).text  # there is only `default`
    await queue.store.fetchval(MEDIA)
    assert "me&lt;dia</a>" in (await client.get("/types")).text
    listed = (await client.get("/types", params={"queue": "me<dia"})).text
    assert "/types/resize" in listed
    assert "/types/letters" not in listed
    unknown = (await client.get("/types", params={"queue": "me<dai"})).text
    assert "did you mean &#39;me&lt;dia&#39;?" in unknown
    of_queue = (await client.get("/jobs", params={"queue": "me<dia"})).text
    assert "jobs in the queue me&lt;dia" in of_queue
    assert of_queue.count("<tr data-key=") == 1
    refused = (await client.get("/jobs", params={"queue": "nothing"})).text
    assert "Queue: no job type has the queue" in refused
    answer = await client.get("/api/v1/types", params={"queue": "me<dia"})
    assert [(each["job_type"], each["queue"]) for each in answer.json()["types"]] == [
        ("resize", "me<dia")
    ]
    for path in ("/api/v1/types", "/api/v1/jobs", "/api/v1/jobs/count"):
        bad = await client.get(path, params={"queue": "me<dai"})
        assert bad.status_code == 404, path
        assert "did you mean" in bad.text
    counted = await client.get("/api/v1/jobs/count", params={"queue": "default"})
    assert counted.json() == {"jobs": 1, "more": False}


async def test_a_type_shows_how_many_jobs_hold_and_wait_for_each_key(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.store.fetchval("select howdah.set_limit('api', 1)")
    await queue.store.fetchval("select howdah.set_type_limit('letters', 2, p_limit => 'api')")
    for key, jobs in {"a": 1, "<b>": 5}.items():
        await queue.enqueue_many(queue.draft("letters", key=key) for _ in range(jobs))
    for _ in range(2):
        await queue.store.fetch("select * from howdah.admit()")
    html = (await client.get("/types/letters")).text
    by_key = html.split('id="keys"')[1].split("</section>")[0]
    assert "A key has 2 slots." in by_key
    assert 'href="/jobs?limited_by=api"' in by_key
    assert row(by_key, "<b>") == {"Key": "<b>", "Hold a slot": "2", "Wait for one": "3"}
    assert row(by_key, "a") == {"Key": "a", "Hold a slot": "1", "Wait for one": "0"}
    assert by_key.index("key=%3Cb%3E") < by_key.index("key=a")
    by_name = figures(html)
    assert by_name["waiting for a slot of their key"] == "3"
    assert by_name["waiting for their limit"] == "2"
    await queue.enqueue("plain")
    plain = (await client.get("/types/plain")).text
    assert 'id="keys"' not in plain
    assert "waiting for" not in plain
