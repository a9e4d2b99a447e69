"""Look: small, readable in every light and width, by keyboard, without scripts or motion."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any, cast
from urllib.parse import quote

import pytest
from playwright.async_api import Browser, CDPSession, Page, expect

from howdah import Priority, Queue, observe
from howdah.web import Password
from tests.support.waiting import eventually
from tests.web.axe import axe_finds_nothing
from tests.web.serving import Served, anybody, served

LONG = "a/name?as&long#as-a-name-may-be/" * 6
PATHS = ("/", "/types", f"/types/{quote(LONG)}", "/health", "/jobs", "/failures", "/workers")
OURS = PATHS[:4]
LIMIT = 100_000  # bytes, compressed, with everything that a page loads


@pytest.fixture
async def full(queue: Queue) -> AsyncGenerator[Served]:
    """A queue with many types, a long name, pauses, problems and failures; whoever asks is in."""

    @queue.job(name=LONG, max_attempts=1)
    async def long(n: int) -> None:
        raise ValueError(f"{n}: " + "what went wrong, told at length, " * 8)

    for n in range(30):
        await queue.enqueue(f"type.{n:02}", priority=n * 7)
    await queue.enqueue("type.00", delay=timedelta(hours=1))
    await queue.enqueue_many(
        queue.draft("type.01", priority=p) for p in Priority for _ in range(40)
    )
    await observe.pause(queue.store, "type.02", "the provider is down, " * 10, "somebody")
    async with queue.worker(), served(queue, access=anybody()) as where:
        handle = await long.enqueue(n=1)
        with pytest.raises(Exception, match="told at length"):
            await handle.result()
        await queue.enqueue(LONG, {"n": 2}, delay=timedelta(hours=1))
        yield where


@pytest.fixture
async def reader(browser: Browser) -> AsyncGenerator[Page]:
    """A page in which nothing may go wrong."""
    wrong: list[str] = []
    page = await browser.new_page()
    page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield page
    await page.close()
    assert wrong == []


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
        asked: list[str] = []
        sizes: list[float] = []
        page.on("request", lambda one, asked=asked: asked.append(one.url))
        _on_loaded(network, sizes)
        await cast(Any, network).send("Network.enable")
        await page.goto(full.url + path)
        loaded = [url for url in asked if "/live" not in url]  # the stream goes on and on
        await eventually(lambda sizes=sizes, loaded=loaded: len(sizes) >= len(loaded))
        assert {".css", "s.js"} <= {url.partition("?")[0][-4:] for url in loaded}
        assert sum(sizes) < LIMIT, (path, sizes)
        await context.close()


def _on_loaded(network: CDPSession, sizes: list[float]) -> None:
    def loaded(event: dict[str, Any]) -> None:
        sizes.append(event["encodedDataLength"])

    cast(Any, network).on("Network.loadingFinished", loaded)


async def test_light_and_dark_follow_the_reader(full: Served, reader: Page) -> None:
    async def ground() -> str:
        return await reader.evaluate("getComputedStyle(document.body).backgroundColor")

    await reader.goto(full.url)
    await reader.emulate_media(color_scheme="light")
    assert await ground() == "rgb(247, 248, 248)"
    await reader.emulate_media(color_scheme="dark")
    assert await ground() == "rgb(18, 21, 23)"


async def test_nothing_moves_for_who_wants_no_motion(full: Served, reader: Page) -> None:
    await reader.goto(full.url)
    pulse = reader.locator("#pulse")
    await expect(pulse).to_have_class("pulse on beat")
    await expect(pulse).to_have_css("animation-name", "beat")
    await reader.emulate_media(reduced_motion="reduce")
    await expect(pulse).to_have_css("animation-name", "none")


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


async def test_a_page_is_walked_through_by_keys(full: Served, reader: Page) -> None:
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
    await expect(reader.get_by_role("searchbox")).to_have_value("g/h?")  # typed, not obeyed
    await keys.press("Escape")
    await expect(focused).to_have_count(0)
    await keys.press("?")
    await expect(reader.get_by_role("dialog")).to_be_visible()
    await keys.press("?")  # once more does no harm
    await keys.press("Escape")
    await expect(reader.get_by_role("dialog")).to_be_hidden()
    for letter, path in {"h": "/health", "o": "/", "t": "/types"}.items():
        await keys.press("g")
        await keys.press(letter)
        await reader.wait_for_url(full.url + path)
    await keys.press("ArrowDown")
    await keys.press("Enter")
    await expect(reader.get_by_role("heading", level=1)).to_contain_text("a/name?as")


async def test_a_redrawn_page_leaves_the_reader_in_peace(
    full: Served, reader: Page, queue: Queue
) -> None:
    """The row moves to another place and the page is drawn; focus and words stay."""
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
    await observe.pause(queue.store, "type.29", "so that its row goes down")
    row = reader.get_by_role("row", name="type.29 paused")
    await expect(row).to_be_visible(timeout=15_000)
    await expect(row.get_by_role("link")).to_be_focused()


async def test_a_page_that_is_old_says_so(reader: Page, queue: Queue) -> None:
    async with served(queue, access=anybody()) as where:
        await reader.route("**/live?*", _late)
        await reader.goto(where.url)
        await expect(reader.locator("#pulse")).to_have_text("This page is old: no answer")
        await reader.unroute("**/live?*")
        await expect(reader.locator("#pulse")).to_have_class("pulse on beat", timeout=15_000)
        await reader.goto("about:blank")


async def _late(route: Any) -> None:
    await route.fulfill(
        content_type="text/event-stream", body="event: late\ndata: no answer\nretry: 300\n\n"
    )


async def test_every_page_says_which_database_this_is_to_those_who_are_in(
    full: Served, reader: Page, queue: Queue
) -> None:
    name = queue.store.database_name
    for path in OURS:
        await reader.goto(full.url + path)
        await expect(reader.locator(".top .database")).to_contain_text(name)
    async with served(queue, access=Password("a-long-password")) as where:
        await reader.goto(where.url)
        await expect(reader.get_by_role("button", name="Enter")).to_be_visible()
        assert name not in await reader.content()


@pytest.mark.parametrize("width", [390, 1440])
async def test_navigation_stands_still_from_page_to_page(
    full: Served, reader: Page, width: int
) -> None:
    await reader.set_viewport_size({"width": width, "height": 700})
    places: set[str] = set()
    for path in OURS:
        await reader.goto(full.url + path)
        places.add(
            await reader.evaluate(
                "JSON.stringify([...document.querySelectorAll('.top nav a, .find input')]"
                ".map(one => one.getBoundingClientRect()).map(at => [at.x, at.y, at.width]))"
            )
        )
    assert len(places) == 1


async def test_a_wide_table_on_a_phone_has_an_edge_and_its_actions_in_reach(
    full: Served, reader: Page
) -> None:
    await reader.set_viewport_size({"width": 390, "height": 844})
    await reader.goto(f"{full.url}/types")
    table = reader.locator(".scroll").first
    assert await table.evaluate("one => one.scrollWidth > one.clientWidth")
    assert "linear-gradient" in await table.evaluate("one => getComputedStyle(one).backgroundImage")
    pause = reader.get_by_role("button", name="Pause type.03")
    assert await pause.evaluate("one => one.getBoundingClientRect().right <= innerWidth")
    await reader.goto(f"{full.url}/jobs?status=pending")
    await reader.locator("#rows input[type=checkbox]").first.check()
    await expect(reader.get_by_role("button", name="Cancel", exact=True)).to_be_in_viewport()


async def test_ticked_jobs_are_acted_on_without_javascript(
    full: Served, browser: Browser, queue: Queue
) -> None:
    context = await browser.new_context(java_script_enabled=False)
    page = await context.new_page()
    await page.goto(f"{full.url}/jobs?job_type=type.07")
    await page.locator("#rows input[type=checkbox]").first.check()
    await page.get_by_role("button", name="Cancel", exact=True).click()
    await expect(page.get_by_text("1 job cancelled.")).to_be_visible()
    await context.close()
