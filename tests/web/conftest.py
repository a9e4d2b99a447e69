"""Fixtures of the dashboard tests: a browser, a logged-in page, an HTTP client."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from howdah import Queue
from howdah.web import dashboard
from howdah.web.access.throttle import Throttle
from tests.web.browser import started
from tests.web.serving import Served, open_access, served, stop_bulk_tasks

expect.set_options(timeout=20_000)  # live pages are drawn less often on a busy machine


@pytest.fixture
async def queue(queue: Queue) -> AsyncGenerator[Queue]:
    """The queue of the test; all bulk tasks on it are cancelled at the end."""
    yield queue
    await stop_bulk_tasks()


@pytest.fixture(autouse=True)
def wrong_tokens_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not delay wrong tokens; test_access.py tests the delay with a fake clock."""

    async def at_once(_: float) -> None:
        pass

    monkeypatch.setattr("howdah.web.app.Throttle", lambda: Throttle(sleep=at_once))


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with started() as browser:
        yield browser


@pytest.fixture
async def web(queue: Queue) -> AsyncGenerator[Served]:
    """The dashboard of the test's queue, on a port."""
    async with served(queue) as running:
        yield running


@pytest.fixture
async def page(browser: Browser, web: Served) -> AsyncGenerator[Page]:
    """A logged-in page of a browser; an error in it fails the test."""
    errors: list[str] = []
    page = await browser.new_page()
    page.on("pageerror", lambda error: errors.append(f"script: {error}"))
    page.on("console", lambda line: errors.append(line.text) if line.type == "error" else None)
    await page.goto(web.login_link)
    yield page
    await page.close()
    assert errors == []


@pytest.fixture
async def client(queue: Queue) -> AsyncGenerator[httpx.AsyncClient]:
    """An HTTP client of the dashboard without a server; every request is authenticated."""
    transport = httpx.ASGITransport(dashboard(queue, access=open_access()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
