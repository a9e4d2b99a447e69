"""Take: screenshots of each page, light and dark, wide and phone."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Literal

import uvicorn
from playwright.async_api import async_playwright

from howdah.embedded import join
from howdah.web import OneTimeLink, dashboard
from howdah.web.serve import address, bind
from tools.pictures.demo_shop import Shop, open_shop, shop_queue
from tools.pictures.seed_history import seed_history

FOLDER = Path("docs/pictures")
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
SIZES = {"wide": (1280, 800), "phone": (390, 844)}


def pages(shop: Shop) -> dict[str, str]:
    """Return the path of every page by the name of its picture."""
    return {
        "overview": "/",
        "jobs": "/jobs",
        "job": f"/jobs/{shop.running}",
        "job-failed": f"/jobs/{shop.failed}",
        "failures": "/failures",
        "workers": "/workers",
        "types": "/types",
        "type": "/types/charge_card",
        "health": "/health",
    }


async def take(dsn: str, program: str) -> None:
    """Fill a queue, serve its dashboard, and take all pictures."""
    async with shop_queue(dsn) as empty:
        await empty.install()
        await seed_history(empty)
    async with open_shop(dsn) as shop:
        link = OneTimeLink()
        app = dashboard(shop.queue, access=link, redact=["card_token"], title="shop")
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off"))
        with bind("127.0.0.1", 0) as listener:
            serving = asyncio.create_task(server.serve([listener]))
            try:
                await _all_pages(program, address(listener), link, pages(shop))
            finally:
                server.should_exit = True
                await serving


async def _all_pages(program: str, url: str, link: OneTimeLink, names: dict[str, str]) -> None:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, chromium_sandbox=False)
        first = await browser.new_page()
        await first.goto(url + link.path)
        cookies = await first.context.cookies()
        for size, (width, height) in SIZES.items():
            for scheme in SCHEMES:
                context = await browser.new_context(
                    viewport={"width": width, "height": height},
                    color_scheme=scheme,
                    reduced_motion="reduce",
                    java_script_enabled=True,
                    timezone_id="UTC",
                    locale="en-GB",
                )
                await context.add_cookies(cookies)  # pyright: ignore[reportArgumentType]
                page = await context.new_page()
                for name, path in names.items():
                    await page.goto(url + path)
                    await page.locator("#live-status.on").wait_for()
                    await page.screenshot(path=FOLDER / f"{name}-{scheme}-{size}.png")
                    print(f"{FOLDER}/{name}-{scheme}-{size}.png")
                await context.close()
        await browser.close()


def main() -> None:
    """Take the pictures with a temporary PostgreSQL."""
    program = shutil.which("chromium")
    if program is None:
        raise SystemExit("pictures need Chromium: install Debian's package `chromium`")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, join(Path(folder) / "pg") as server:
        asyncio.run(take(server.dsn, program))
