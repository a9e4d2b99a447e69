"""The page about the API: every page links to it, and it fits on a phone."""

from __future__ import annotations

import httpx
from playwright.async_api import Page, expect

from tests.web.axe import axe_finds_nothing
from tests.web.serving import Served


async def test_code_is_shown_as_code(client: httpx.AsyncClient) -> None:
    html = (await client.get("/api")).text
    assert "`" not in html
    assert "<code>Authorization: Bearer</code>" in html
    assert "<code>run-now</code> puts a scheduled job" in html


async def test_every_page_links_to_it(page: Page, web: Served) -> None:
    for path in ("/", "/jobs", "/health"):
        await page.goto(web.url + path)
        await page.get_by_role("contentinfo").get_by_role("link", name="API").click()
        await expect(page.get_by_role("heading", name="API", exact=True)).to_be_visible()


async def test_a_phone_shows_whole_tables_and_whole_names(page: Page, web: Served) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"{web.url}/api")
    hidden = await page.evaluate(
        "[...document.querySelectorAll('main .scroll, main .card, html')]"
        ".filter(table => table.scrollWidth > table.clientWidth).length"
    )
    assert hidden == 0
    broken = await page.evaluate(
        "[...document.querySelectorAll('tbody th code')]"
        ".filter(name => name.getClientRects().length > 1).map(name => name.textContent)"
    )
    assert broken == []  # no name is broken into two lines
    await axe_finds_nothing(page)


async def test_a_visitor_without_a_login_sees_no_link(web: Served) -> None:
    async with httpx.AsyncClient(base_url=web.url) as client:
        refused = await client.get("/", headers={"accept": "text/html"})
    assert refused.status_code == 401
    assert "/api" not in refused.text
