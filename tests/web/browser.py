"""Browser: a real Chromium, driven by Playwright.

Without Chromium the tests are skipped, with a message that says how to install it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Browser, async_playwright

from tests.support.debian import missing, program


def find_chromium() -> str:
    """Return the program, or skip the test."""
    if (path := program("chromium")) is None:
        pytest.skip(f"DASHBOARD NOT TESTED IN A BROWSER: {missing('chromium')}")
    return path


@asynccontextmanager
async def started() -> AsyncGenerator[Browser]:
    """Start a browser that stays on this machine."""
    program = find_chromium()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program,
            args=[
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ],
            chromium_sandbox=False,
        )
        try:
            yield browser
        finally:
            await browser.close()
