"""Health: the checks of the doctor, worst first, each with its meaning and its remedy."""

from __future__ import annotations

import re

import httpx
from playwright.async_api import Page, expect

from howdah import Queue, observe
from howdah.observe import Level
from howdah.observe.doctor import database, tables, workers
from howdah.web.pages.health import MEANINGS, title_of
from tests.web.serving import Served


async def test_a_healthy_queue_has_no_problem(client: httpx.AsyncClient, queue: Queue) -> None:
    @queue.job
    async def letters() -> None: ...

    async with queue.worker():
        html = (await client.get("/health")).text
        health = await observe.examine(queue.store)
    assert health.level is Level.FINE
    assert f"{len(health.checks)} checks found no problem." in html


async def test_every_check_of_the_doctor_is_shown(client: httpx.AsyncClient, queue: Queue) -> None:
    health = await observe.examine(queue.store)
    html = (await client.get("/health")).text
    assert len(health.checks) > 8
    for check in health.checks:
        assert title_of(check.name) in html
        assert MEANINGS[check.name].split("'")[0] in html


async def test_failed_checks_come_first_with_their_remedy(
    client: httpx.AsyncClient, queue: Queue
) -> None:
    await queue.enqueue("letters")  # and no worker runs
    html = (await client.get("/health")).text
    levels = re.findall(r'<li class="check (\w+)"', html)
    assert levels[0] == "critical"
    assert levels == sorted(levels, key=lambda level: -Level[level.upper()])
    first = html.split('<li class="check')[1]
    assert "0 workers are alive." in first
    assert "Start a worker: howdah worker MODULE:QUEUE." in first
    assert "One check of" in html


def test_every_check_has_a_meaning() -> None:
    checks = {**database.EXAMINATIONS, **tables.EXAMINATIONS, **workers.EXAMINATIONS}
    assert checks.keys() <= MEANINGS.keys()


async def test_an_open_page_shows_a_new_problem_and_its_end(
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
