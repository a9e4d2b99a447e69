"""Live: a page that is left open is drawn again when it changed, and not too often.

Comes after  page.py

The browser opens one stream and names its page. Everybody who looks at the same page shares one
`Stage`, which draws it once a second at most, or at once when the job it is about has news, and
sends it on only when it differs from what was sent before.

All stages share one `Pace`: after a drawing that took t seconds nobody draws for 50 times t. So the
dashboard takes less than 2 % of what the database could do, however many pages are open.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from howdah.errors import HowdahError
from howdah.web.desk import Desk, desk_of, who_of
from howdah.web.page import Page
from howdah.web.paths import outer

_log = logging.getLogger("howdah.web")

EVERY = 1.0  # seconds between two drawings of one page that has no news of its own
REST = 50  # times as long as a drawing took
PING = 15  # seconds after which a silent stream says that it is there


class Pace:
    """Lets one draw at a time, and then nobody for a while."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._free_at = 0.0

    async def __aenter__(self) -> None:
        await self._lock.acquire()
        try:
            await asyncio.sleep(max(0.0, self._free_at - time.monotonic()))
        except BaseException:
            self._lock.release()
            raise
        self._began = time.monotonic()

    async def __aexit__(self, *_: object) -> None:
        now = time.monotonic()
        self._free_at = now + REST * (now - self._began)
        self._lock.release()


@dataclass
class Drawn:
    """What a page looked like last."""

    html: str = ""
    number: int = 0


class Stage:
    """One page, drawn for all who look at it."""

    def __init__(self, page: Page, request: Request, pace: Pace) -> None:
        self.viewers = 0
        self._page = page
        self._request = request
        self._pace = pace
        self._drawn = Drawn()
        self._changed = asyncio.Condition()
        self._task: asyncio.Task[None] | None = None

    async def watch(self) -> AsyncGenerator[ServerSentEvent]:
        """Send the page whenever it changed, until the viewer leaves."""
        self.viewers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._draw_for_ever(), name="howdah-web-stage")
        seen = 0
        try:
            while True:
                async with self._changed:
                    await self._changed.wait_for(lambda: self._drawn.number > seen)  # noqa: B023
                    seen, html = self._drawn.number, self._drawn.html
                yield ServerSentEvent(html, event="draw")
        finally:
            self.viewers -= 1
            if not self.viewers:
                self._task.cancel()
                self._task = None

    async def _draw_for_ever(self) -> None:
        id = self._page.job(self._request) if self._page.job else None
        async with News(desk_of(self._request), id) as news:
            while True:
                async with self._pace:
                    html = await self._draw()
                if html is not None and html != self._drawn.html:
                    async with self._changed:
                        self._drawn = Drawn(html, self._drawn.number + 1)
                        self._changed.notify_all()
                await news.wait()

    async def _draw(self) -> str | None:
        try:
            return await self._page.draw_main(self._request)
        except HowdahError as error:  # the page stays as it is; the next look may find more
            _log.warning("web.late page=%s error=%s", self._request.url.path, error)
            return None


class News:
    """Waits until a page is worth drawing again."""

    def __init__(self, desk: Desk, id: UUID | None) -> None:
        self._subscription = desk.queue.follower.subscribe(id) if id is not None else None

    async def __aenter__(self) -> News:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._subscription is not None:
            self._subscription.close()

    async def wait(self) -> None:
        if self._subscription is None:
            await asyncio.sleep(EVERY)
            return
        with suppress(TimeoutError, HowdahError):
            async with asyncio.timeout(EVERY):
                await self._subscription.next()
                return
        # a page about a job that is gone is not drawn in a hurry


class Live:
    """All pages that somebody looks at."""

    def __init__(self, pages: list[Page]) -> None:
        self._pages = pages
        self._stages: dict[tuple[str, str], Stage] = {}
        self._pace = Pace()
        self.route: Route = Route("/live", self._stream, methods=["GET"])

    async def _stream(self, request: Request) -> Response:
        said = request.query_params.get("page", "")
        page, own = self._find(request, said)
        key = (who_of(request), said)
        stage = self._stages.setdefault(key, Stage(page, own, self._pace))

        async def watch() -> AsyncGenerator[ServerSentEvent]:
            try:
                async for event in stage.watch():
                    yield event
            finally:
                if not stage.viewers:
                    self._stages.pop(key, None)

        return EventSourceResponse(watch(), ping=PING)

    def _find(self, request: Request, said: str) -> tuple[Page, Request]:
        """Find the page of a path with its query, and the request that would have asked for it."""
        parts = urlsplit(said)
        scope = dict(request.scope)
        scope["path"] = outer(request, parts.path)
        scope["query_string"] = parts.query.encode()
        for page in self._pages:
            match, child = page.matches(scope)
            if match is Match.FULL and page.live:
                return page, Request({**scope, **child})
        raise HTTPException(404, "there is no live page with this path")
