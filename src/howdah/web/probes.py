"""Probes: `/healthz` and `/readyz` for load balancers and Kubernetes.

Both are public and accept any Host header, so they answer only a few fixed words. All requests
within one second share one database query, and only one query runs at a time.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from howdah.client.queue import Queue
from howdah.observe.ready import not_ready

SHARED_FOR = 1.0  # seconds that a result answers all requests


class Probes:
    """The two routes, and the last result."""

    def __init__(self, queue: Queue, within: timedelta) -> None:
        self._queue = queue
        self._within = within
        self._check: asyncio.Task[str | None] | None = None
        self._until = 0.0

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self._alive, methods=["GET"]),
            Route("/readyz", self._ready, methods=["GET"]),
        ]

    async def _alive(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _: Request) -> Response:
        missing = await asyncio.shield(self._current())  # other requests wait for it too
        return PlainTextResponse(f"{missing or 'ok'}\n", 503 if missing else 200)

    def _current(self) -> asyncio.Task[str | None]:
        """Return the running or recent check; else start one."""
        check = self._check
        usable = check is not None and check.get_loop() is asyncio.get_running_loop()
        if check is None or not usable or (check.done() and time.monotonic() >= self._until):
            self._check = check = asyncio.create_task(not_ready(self._queue.store, self._within))
            check.add_done_callback(self._keep)
        return check

    def _keep(self, _: asyncio.Task[str | None]) -> None:
        self._until = time.monotonic() + SHARED_FOR
