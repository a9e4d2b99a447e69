"""Live: what happens in the queue is seen in an open page, without loading it again."""

from __future__ import annotations

from playwright.async_api import Page, expect

from howdah import Queue


async def test_an_open_page_shows_what_comes_later(page: Page, queue: Queue) -> None:
    await expect(page.get_by_role("link", name="letters")).to_have_count(0)
    await queue.enqueue("letters")
    await expect(page.get_by_role("link", name="letters")).to_be_visible()
