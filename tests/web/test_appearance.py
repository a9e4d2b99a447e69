"""Appearance: page size, widths, light and dark, keyboard, no scripts, reduced motion."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any, cast
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, CDPSession, Page, expect

from howdah import Priority, Queue, observe
from howdah.store import steer
from howdah.web import Password
from tests.support.waiting import eventually
from tests.web.axe import axe_finds_nothing
from tests.web.serving import Served, open_access, served

LONG = "a/name?as&long#as-a-name-may-be/" * 6
PATHS = ("/", "/types", f"/types/{quote(LONG)}", "/health", "/jobs", "/failures", "/workers")
OURS = (*PATHS[:4], "/limits")
LIMIT = 100_000  # bytes, compressed, with everything that a page loads


@pytest.fixture
async def full(queue: Queue) -> AsyncGenerator[Served]:
    """A queue with many types, a long name, pauses, problems and failures; access is open."""

    @queue.job(name=LONG, max_attempts=1)
    async def long(n: int) -> None:
        raise ValueError(f"{n}: " + "a long error message, " * 8)

    for n in range(30):
        await queue.enqueue(f"type.{n:02}", priority=n * 7)
    await queue.enqueue("type.00", delay=timedelta(hours=1))
    await queue.enqueue_many(
        queue.draft("type.01", priority=p) for p in Priority for _ in range(40)
    )
    await steer.pause(queue.store, "type.02", "the provider is down, " * 10, "somebody")
    async with queue.worker(), served(queue, access=open_access()) as running:
        handle = await long.enqueue(n=1)
        with pytest.raises(Exception, match="a long error message"):
            await handle.result()
        await queue.enqueue(LONG, {"n": 2}, delay=timedelta(hours=1))
        yield running


@pytest.fixture
async def reader(browser: Browser) -> AsyncGenerator[Page]:
    """A page of a browser; an error in it fails the test."""
    errors: list[str] = []
    page = await browser.new_page()
    page.on("pageerror", lambda error: errors.append(f"script: {error}"))
    page.on(
        "console", lambda message: errors.append(message.text) if message.type == "error" else None
    )
    yield page
    await page.close()
    assert errors == []


async def test_nothing_is_wider_than_a_phone_and_axe_finds_nothing(
    full: Served, reader: Page
) -> None:
    await reader.set_viewport_size({"width": 390, "height": 844})
    for path in PATHS:
        await reader.goto(full.url + path)
        assert await _too_wide(reader) == 0, path
    await reader.goto(full.url)
    await axe_finds_nothing(reader)
    await reader.set_viewport_size({"width": 1440, "height": 900})
    for path in OURS:
        await reader.goto(full.url + path)
        assert await _too_wide(reader) == 0, path
        await axe_finds_nothing(reader)


async def _too_wide(page: Page) -> int:
    return await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


async def test_every_page_loads_under_100_kb_compressed(full: Served, browser: Browser) -> None:
    for path in PATHS:
        context = await browser.new_context()  # with nothing in its cache
        page = await context.new_page()
        network = await context.new_cdp_session(page)
        urls: list[str] = []
        sizes: list[float] = []
        page.on("request", lambda request, urls=urls: urls.append(request.url))
        _on_loaded(network, sizes)
        await cast(Any, network).send("Network.enable")
        await page.goto(full.url + path)
        loaded = [url for url in urls if "/live" not in url]  # the stream does not end
        await eventually(lambda sizes=sizes, loaded=loaded: len(sizes) >= len(loaded))
        assert {".css", "s.js"} <= {url.partition("?")[0][-4:] for url in loaded}
        assert sum(sizes) < LIMIT, (path, sizes)
        await context.close()


def _on_loaded(network: CDPSession, sizes: list[float]) -> None:
    def loaded(event: dict[str, Any]) -> None:
        sizes.append(event["encodedDataLength"])

    cast(Any, network).on("Network.loadingFinished", loaded)


async def test_light_and_dark_follow_the_setting_of_the_browser(full: Served, reader: Page) -> None:
    async def background() -> str:
        return await reader.evaluate("getComputedStyle(document.body).backgroundColor")

    await reader.goto(full.url)
    await reader.emulate_media(color_scheme="light")
    assert await background() == "rgb(247, 248, 248)"
    await reader.emulate_media(color_scheme="dark")
    assert await background() == "rgb(18, 21, 23)"


async def test_reduced_motion_stops_every_animation(full: Served, reader: Page) -> None:
    await reader.goto(full.url)
    status = reader.locator("#live-status")
    await expect(status).to_have_class("live-status on beat")
    await expect(status).to_have_css("animation-name", "beat")
    await reader.emulate_media(reduced_motion="reduce")
    await expect(status).to_have_css("animation-name", "none")


async def test_pages_can_be_read_and_forms_sent_without_javascript(
    full: Served, browser: Browser, queue: Queue
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(full.url)
    await expect(page.get_by_role("row", name="type.02 paused")).to_contain_text("1")
    await page.get_by_role("link", name="type.03", exact=True).click()
    await expect(page.locator("#why")).to_contain_text("No live worker knows the type type.03")
    await page.get_by_role("button", name="Pause type.03").click()
    await expect(page.get_by_text("type.03 is paused.")).to_be_visible()
    assert "type.03" in await observe.paused(queue.store)
    await page.get_by_role("navigation").get_by_role("link", name="Health").click()
    await expect(page.get_by_role("heading", name="Oldest transaction")).to_be_visible()
    await context.close()


async def test_a_page_can_be_used_by_keyboard(full: Served, reader: Page) -> None:
    await reader.goto(f"{full.url}/types")
    keys, focused = reader.keyboard, reader.locator(":focus")
    rows = reader.locator("tbody tr th a")
    await keys.press("ArrowDown")
    await expect(rows.first).to_be_focused()
    await keys.press("ArrowDown")
    await keys.press("ArrowDown")
    await keys.press("ArrowUp")
    await expect(rows.nth(1)).to_be_focused()
    await keys.press("/")
    await expect(reader.get_by_role("searchbox")).to_be_focused()
    await keys.type("g/h?")
    await expect(reader.get_by_role("searchbox")).to_have_value("g/h?")  # typed text, not shortcuts
    await keys.press("Escape")
    await expect(focused).to_have_count(0)
    await keys.press("?")
    await expect(reader.get_by_role("dialog")).to_be_visible()
    await keys.press("?")  # a second press changes nothing
    await keys.press("Escape")
    await expect(reader.get_by_role("dialog")).to_be_hidden()
    for letter, path in {"h": "/health", "o": "/", "t": "/types"}.items():
        await keys.press("g")
        await keys.press(letter)
        await reader.wait_for_url(full.url + path)
    await keys.press("ArrowDown")
    await keys.press("Enter")
    await expect(reader.get_by_role("heading", level=1)).to_contain_text("a/name?as")


async def test_a_live_update_keeps_focus_and_typed_text(
    full: Served, reader: Page, queue: Queue
) -> None:
    """The row moves and the page is drawn again; focus and typed text stay."""
    await reader.goto(f"{full.url}/types")
    reason = reader.get_by_label("Reason to pause type.05")
    await reason.fill("half a thou")
    await queue.enqueue("a.first.one")  # above it
    await expect(reader.locator("tbody tr th a").nth(0)).to_have_text("a.first.one")
    await expect(reason).to_be_focused()
    await reader.keyboard.type("ght")
    await expect(reason).to_have_value("half a thought")
    await reader.goto(full.url)
    await reader.get_by_role("link", name="type.29", exact=True).focus()
    await steer.pause(queue.store, "type.29", "so that its row goes down")
    row = reader.get_by_role("row", name="type.29 paused")
    await expect(row).to_be_visible(timeout=15_000)
    await expect(row.get_by_role("link")).to_be_focused()


async def test_an_outdated_page_shows_that_it_is_outdated(reader: Page, queue: Queue) -> None:
    async with served(queue, access=open_access()) as running:
        await reader.route("**/live?*", _late)
        await reader.goto(running.url)
        await expect(reader.locator("#live-status")).to_have_text("This page is old: no answer")
        await reader.unroute("**/live?*")
        await expect(reader.locator("#live-status")).to_have_class(
            "live-status on beat", timeout=15_000
        )
        await reader.goto("about:blank")


async def _late(route: Any) -> None:
    await route.fulfill(
        content_type="text/event-stream", body="event: late\ndata: no answer\nretry: 300\n\n"
    )


async def test_every_page_names_its_database_after_login(
    full: Served, reader: Page, queue: Queue
) -> None:
    name = queue.store.database_name
    for path in OURS:
        await reader.goto(full.url + path)
        await expect(reader.locator(".top .database")).to_contain_text(name)
    async with served(queue, access=Password("a-long-password")) as running:
        await reader.goto(running.url)
        await expect(reader.get_by_role("button", name="Log in")).to_be_visible()
        assert name not in await reader.content()


@pytest.mark.parametrize("width", [390, 1440])
async def test_the_navigation_has_the_same_position_on_every_page(
    full: Served, reader: Page, width: int
) -> None:
    await reader.set_viewport_size({"width": width, "height": 700})
    places: set[str] = set()
    for path in OURS:
        await reader.goto(full.url + path)
        places.add(
            await reader.evaluate(
                "JSON.stringify([...document.querySelectorAll('.top nav a, .find input')]"
                ".map(link => link.getBoundingClientRect()).map(at => [at.x, at.y, at.width]))"
            )
        )
    assert len(places) == 1


async def test_a_wide_table_on_a_phone_shows_a_shadow_and_its_actions(
    full: Served, reader: Page
) -> None:
    await reader.set_viewport_size({"width": 390, "height": 844})
    await reader.goto(f"{full.url}/types")
    table = reader.locator(".scroll").first
    assert await table.evaluate("table => table.scrollWidth > table.clientWidth")
    assert "linear-gradient" in await table.evaluate(
        "table => getComputedStyle(table).backgroundImage"
    )
    pause = reader.get_by_role("button", name="Pause type.03")
    assert await pause.evaluate("button => button.getBoundingClientRect().right <= innerWidth")
    await reader.goto(f"{full.url}/jobs?status=pending")
    await reader.locator("#rows input[type=checkbox]").first.check()
    await expect(reader.get_by_role("button", name="Cancel", exact=True)).to_be_in_viewport()


async def test_the_error_of_a_job_has_a_whole_line_on_a_phone(full: Served, reader: Page) -> None:
    await reader.set_viewport_size({"width": 390, "height": 844})
    await reader.goto(f"{full.url}/jobs?status=failed")
    shares = await reader.locator("#rows .why").first.evaluate(
        "cell => [cell, cell.querySelector('span')]"
        ".map(part => part.clientWidth / cell.closest('tr').clientWidth)"
    )
    assert min(shares) > 0.9


async def test_actions_on_selected_jobs_work_without_javascript(
    full: Served, browser: Browser, queue: Queue
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{full.url}/jobs?job_type=type.07")
    await page.locator("#rows input[type=checkbox]").first.check()
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await expect(page.get_by_text("1 job cancelled.")).to_be_visible()
    await context.close()
