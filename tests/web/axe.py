"""Axe: the accessibility checker, run on a page in light and in dark."""

from __future__ import annotations

from typing import Any, Literal, cast

from axe_playwright_python.async_playwright import Axe  # pyright: ignore[reportMissingTypeStubs]
from playwright.async_api import Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


async def axe_finds_nothing(page: Page) -> None:
    for scheme in SCHEMES:
        await page.emulate_media(color_scheme=scheme)
        report = (await cast(Any, Axe()).run(page)).response
        assert report["violations"] == [], (scheme, report["violations"])
