"""Serving: a dashboard on a port of this machine, in the loop of the test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from howdah import Queue
from howdah.web import Mine, OneTimeLink, dashboard
from howdah.web.serve import address, bind


class Served:
    """Where a dashboard can be opened."""

    def __init__(self, url: str, link: OneTimeLink | None) -> None:
        self.url = url
        self._link = link

    @property
    def entrance(self) -> str:
        """The link that lets a browser in once."""
        assert self._link is not None
        return self.url + self._link.path


@asynccontextmanager
async def served(queue: Queue, **options: Any) -> AsyncGenerator[Served]:
    """Serve the dashboard of a queue; by default whoever has the one-time link gets in."""
    access = options.pop("access", None) or OneTimeLink()
    app = dashboard(queue, access=access, **options)
    async with served_app(app) as url:
        yield Served(url, access if isinstance(access, OneTimeLink) else None)


@asynccontextmanager
async def served_app(app: ASGIApp) -> AsyncGenerator[str]:
    """Serve any app; yields its address."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as door:
        serving = asyncio.create_task(server._serve([door]))  # pyright: ignore[reportPrivateUsage]
        try:
            yield address(door)
        finally:
            server.should_exit = True
            await serving


def hands() -> list[asyncio.Task[None]]:
    """Return those inside dashboards that look for bulk jobs, or run them."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "howdah-web-bulk"]


async def stop_hands() -> None:
    """End them, also those of a dashboard that nobody tells that it stops."""
    left = hands()
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def anybody() -> Mine:
    """Access for tests that are not about access."""
    return Mine(lambda _: os.environ.get("USER") or "somebody")
