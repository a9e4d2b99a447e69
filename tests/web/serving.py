"""Serving: a dashboard on a port of this machine, in the event loop of the test."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from howdah import Queue
from howdah.web import AppAccess, OneTimeLink, dashboard
from howdah.web.serve import address, bind


class Served:
    """The URL of a running dashboard."""

    def __init__(self, url: str, link: OneTimeLink | None) -> None:
        self.url = url
        self._link = link

    @property
    def login_link(self) -> str:
        """The one-time link."""
        assert self._link is not None
        return self.url + self._link.path


@asynccontextmanager
async def served(queue: Queue, **options: Any) -> AsyncGenerator[Served]:
    """Serve the dashboard of a queue; by default with a one-time link."""
    access = options.pop("access", None) or OneTimeLink()
    app = dashboard(queue, access=access, **options)
    async with served_app(app) as url:
        yield Served(url, access if isinstance(access, OneTimeLink) else None)


@asynccontextmanager
async def served_app(app: ASGIApp) -> AsyncGenerator[str]:
    """Serve any app; yields its address."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    with bind("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server._serve([listener]))  # pyright: ignore[reportPrivateUsage]
        try:
            yield address(listener)
        finally:
            server.should_exit = True
            await serving


def bulk_tasks() -> list[asyncio.Task[None]]:
    """Return the tasks of dashboards that run bulk jobs."""
    return [task for task in asyncio.all_tasks() if task.get_name() == "howdah-web-bulk"]


async def stop_bulk_tasks() -> None:
    """Cancel these tasks, also those of a dashboard that was never shut down."""
    tasks = bulk_tasks()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def open_access() -> AppAccess:
    """Admit every request; for tests that are not about access."""
    return AppAccess(lambda _: os.environ.get("USER") or "somebody")
