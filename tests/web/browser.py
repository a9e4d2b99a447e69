"""Browser: a real Chromium, driven by Playwright.

Chromium is found on PATH, or installed from Debian's package by whoever is root. Otherwise the
tests are skipped, and say what to do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache

import pytest
from playwright.async_api import Browser, async_playwright

HOW = "install Debian's package `chromium`, or any other, so that `chromium` is on PATH"
NAMES = ("chromium", "chromium-browser", "google-chrome")


@cache
def find_chromium() -> str:
    """Return the program; install it where that is ours to do."""
    if found := _on_path():
        return found
    apt = shutil.which("apt-get")
    if os.geteuid() == 0 and apt is not None:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for words in (("update",), ("install", "-y", "--no-install-recommends", "chromium")):
            subprocess.run([apt, "-qq", *words], capture_output=True, env=quiet, timeout=600)
        if found := _on_path():
            return found
    pytest.skip(f"DASHBOARD NOT TESTED IN A BROWSER: {HOW}")


def _on_path() -> str | None:
    return next((found for name in NAMES if (found := shutil.which(name))), None)


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
