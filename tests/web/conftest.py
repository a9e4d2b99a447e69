"""What tests of the dashboard may ask for: a browser, a page that is let in, an HTTP client."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import httpx
import pytest
from playwright.async_api import Browser, Page, expect

from howdah import Queue
from howdah.web import dashboard
from howdah.web.access.throttle import Throttle
from tests.web.browser import started
from tests.web.serving import Served, anybody, served, stop_hands

expect.set_options(timeout=20_000)  # on a busy machine an open page is drawn seldom, by design


@pytest.fixture
async def queue(queue: Queue) -> AsyncGenerator[Queue]:
    """The test's queue; no dashboard works on it any more when it goes."""
    yield queue
    await stop_hands()


@pytest.fixture(autouse=True)
def wrong_tokens_are_answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long a wrong token waits is tested in test_access.py, with a clock that is moved."""

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
    async with served(queue) as where:
        yield where


@pytest.fixture
async def page(browser: Browser, web: Served) -> AsyncGenerator[Page]:
    """A browser's page that has come in by the link; whatever goes wrong in it fails the test."""
    wrong: list[str] = []
    page = await browser.new_page()
    page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    await page.goto(web.entrance)
    yield page
    await page.close()
    assert wrong == []


@pytest.fixture
async def client(queue: Queue) -> AsyncGenerator[httpx.AsyncClient]:
    """HTTP to the dashboard without a server between; whoever asks is let in."""
    transport = httpx.ASGITransport(dashboard(queue, access=anybody()))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
