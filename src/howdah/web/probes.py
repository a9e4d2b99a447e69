"""Probes: whether the dashboard lives, and whether it can work, for load balancers and Kubernetes.

Comes after  gate.py, which lets everybody pass to these two, whatever name the server is called by

Everybody may ask, so they tell nothing but a few fixed words, and asking costs nothing: one look
at the database serves all who ask within a second, and no second look begins beside it.
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

HOLDS = 1.0  # seconds that an answer serves all who ask


class Probes:
    """The two routes, and the last answer."""

    def __init__(self, queue: Queue, within: timedelta) -> None:
        self._queue = queue
        self._within = within
        self._look: asyncio.Task[str | None] | None = None
        self._until = 0.0

    def routes(self) -> list[Route]:
        return [
            Route("/healthz", self._lives, methods=["GET"]),
            Route("/readyz", self._ready, methods=["GET"]),
        ]

    async def _lives(self, _: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def _ready(self, _: Request) -> Response:
        missing = await asyncio.shield(self._current())  # others wait for it, too
        return PlainTextResponse(f"{missing or 'ok'}\n", 503 if missing else 200)

    def _current(self) -> asyncio.Task[str | None]:
        """Return the look that is under way, or was a moment ago; else begin one."""
        look = self._look
        usable = look is not None and look.get_loop() is asyncio.get_running_loop()
        if look is None or not usable or (look.done() and time.monotonic() >= self._until):
            self._look = look = asyncio.create_task(not_ready(self._queue.store, self._within))
            look.add_done_callback(self._keep)
        return look

    def _keep(self, _: asyncio.Task[str | None]) -> None:
        self._until = time.monotonic() + HOLDS
