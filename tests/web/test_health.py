"""Health: the doctor's findings, worst first, each with what it means and what to do."""

from __future__ import annotations

import re

import httpx
from playwright.async_api import Page, expect

from howdah import Queue, observe
from howdah.observe import Level
from howdah.observe.doctor import database, tables, workers
from howdah.web.pages.health import MEANINGS, title_of
from tests.web.serving import Served


async def test_all_is_well_is_said(client: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job
    async def letters() -> None: ...

    async with queue.worker():
        shown = (await client.get("/health")).text
        found = await observe.examine(queue.store)
    assert found.level is Level.FINE
    assert f"{len(found.checks)} checks found no problem." in shown


async def test_every_check_of_the_doctor_is_there(client: httpx.AsyncClient, queue: Queue) -> None:
    found = await observe.examine(queue.store)
    shown = (await client.get("/health")).text
    assert len(found.checks) > 8
    for check in found.checks:
        assert title_of(check.name) in shown
        assert MEANINGS[check.name].split("'")[0] in shown


async def test_the_sick_comes_first_with_what_to_do(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters")  # and nobody works
    shown = (await client.get("/health")).text
    levels = re.findall(r'<li class="check (\w+)"', shown)
    assert levels[0] == "critical"
    assert levels == sorted(levels, key=lambda word: -Level[word.upper()])
    first = shown.split('<li class="check')[1]
    assert "0 workers are alive." in first
    assert "Start a worker: howdah worker MODULE:QUEUE." in first
    assert "One check of" in shown


def test_every_examination_says_why_it_is_made() -> None:
    made = {**database.EXAMINATIONS, **tables.EXAMINATIONS, **workers.EXAMINATIONS}
    assert made.keys() <= MEANINGS.keys()


async def test_the_open_page_sees_the_queue_fall_ill_and_get_well(
    page: Page, web: Served, queue: Queue
) -> None:
    await page.goto(f"{web.url}/health")
    await expect(page.locator("#verdict")).to_contain_text("found no problem")
    await queue.enqueue("letters")
    await expect(page.locator("#verdict")).to_contain_text("One check of", timeout=15_000)

    @queue.job
    async def letters() -> None: ...

    async with queue.worker():
        await expect(page.locator("#verdict")).to_contain_text("found no problem", timeout=15_000)
