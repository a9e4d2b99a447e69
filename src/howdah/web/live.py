"""Live: a page that is left open is drawn again when it changed, and not too often.

Comes after  page.py

The browser opens one stream and names its page. Everybody who looks at the same page shares one
`Stage`, which draws it once a second at most, or at once when the job it is about has news, and
sends it on only when it differs from what was sent before. A drawing that fails is told as `late`
and tried again; the page stays as it was. A stage ends when nobody looks.

Lists share one `Pace`, and the pages of single jobs another: for each drawing nobody draws for 50
times as long as the quickest of the page's last few took. That bounds how often pages are drawn,
however many look; what it comes to for the database is measured by bench/dashboard.py.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, cast
from urllib.parse import unquote, urlsplit
from uuid import UUID

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from howdah.errors import HowdahError, Unreachable
from howdah.web.desk import Desk, desk_of, who_of
from howdah.web.page import Page
from howdah.web.paths import outer
from howdah.web.recent import LIVE

_log = logging.getLogger("howdah.web")

EVERY = 1.0  # seconds between two drawings of one page that has no news of its own
AT_ONCE = 0.2  # and of one that has
REST = 50  # times as long as a drawing took
REMEMBERED = 5  # drawings of one page
KNOWN = 1000  # pages whose drawings are remembered
FIRST = 0.02  # seconds that a first drawing counts at most
OWED = 1.0  # seconds of rest that may be owed: a page that seldom draws need not wait for others
LONGEST_REST = 60.0  # for one drawing, so that a bad minute does not stop the page for an hour
PING = 15  # seconds after which a silent stream says that it is there
LASTS = 900.0  # seconds, then the browser asks anew: whoever may no longer enter sees no more
GRACE = 1.0  # seconds in which a stream ends in order when the server stops
MISTAKE = "the dashboard made a mistake; its log tells which"


class Pace:
    """Lets one draw at a time, and lets all rest in proportion to what drawings take."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._paid_at = 0.0

    @asynccontextmanager
    async def turn(self, took: deque[float]) -> AsyncGenerator[None]:
        """Wait for the turn of a page; `took` are the times that its last drawings took."""
        async with self._lock:
            await asyncio.sleep(max(0.0, self._paid_at - OWED - time.monotonic()))
            began = time.monotonic()
            try:
                yield
            except Unreachable:  # a database that is away is not spared by asking it seldom
                took.clear()
                raise
            finally:
                now = time.monotonic()
                took.append(now - began)
                self._paid_at = max(self._paid_at, now) + cost(took)


def cost(took: deque[float]) -> float:
    """Say how long to rest for a drawing, from how long it and the last ones before it took.

    The shortest counts: the others had to wait for a processor. A first one does everything for
    the first time, such as connecting, and counts as if it had been quick.
    """
    least = min(took[0], FIRST) if len(took) == 1 else min(took)
    return min(REST * least, LONGEST_REST)


class Drawn(NamedTuple):
    """What was sent last: a drawing, or why there is none."""

    event: str
    data: str


class Viewer:
    """Somebody with an open stream."""

    def __init__(self) -> None:
        self.left: bool = False
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    def set(self) -> None:
        """Leave; this is how a stream is told that the server stops."""
        self.left = True
        self.wake()

    async def woken(self, until: float) -> bool:
        """Wait for news; False when there were none until then."""
        self._news.clear()
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._news.wait()
        except TimeoutError:
            return False
        return True


class Stage:
    """One page, drawn for all who look at it."""

    def __init__(
        self, page: Page, request: Request, job: UUID | None, pace: Pace, took: deque[float]
    ) -> None:
        self.viewers: set[Viewer] = set()
        self._page = page
        self._request = request
        self._job = job
        self._pace = pace
        self.took: deque[float] = took
        self._drawn = Drawn("", "")
        self._number = 0
        self._task = asyncio.create_task(self._draw_for_ever(), name="howdah-web-stage")

    def close(self) -> None:
        """Stop drawing."""
        self._task.cancel()

    async def watch(self, viewer: Viewer) -> AsyncGenerator[ServerSentEvent]:
        """Send the page whenever it changed, for as long as a stream lasts."""
        seen, until = 0, time.monotonic() + LASTS
        while not (viewer.left or self._task.done()):
            if self._number != seen:
                seen, drawn = self._number, self._drawn
                yield ServerSentEvent(drawn.data, event=drawn.event)
            elif not await viewer.woken(until):
                return

    async def _draw_for_ever(self) -> None:
        try:
            async with News(desk_of(self._request), self._job) as news:
                while True:
                    await news.wait()  # first, too: whoever looks has just loaded the page
                    drawn = await self._draw()
                    if drawn != self._drawn:
                        self._drawn = drawn
                        self._number += 1
                        self._tell()
        except Exception:
            _log.exception("web.stage_ended page=%r", self._request.url.path)
        finally:
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        for viewer in self.viewers:
            viewer.wake()

    async def _draw(self) -> Drawn:
        try:
            async with self._pace.turn(self.took):
                return Drawn("draw", await self._page.draw_main(self._request))
        except HowdahError as error:
            return self._late(str(error))
        except HTTPException as error:
            return self._late(error.detail)
        except Exception:
            if self._drawn.data != MISTAKE:
                _log.exception("web.mistake page=%r", self._request.url.path)
            return Drawn("late", MISTAKE)

    def _late(self, why: str) -> Drawn:
        """Leave the page as it is; the next look may find more."""
        if self._drawn.event != "late":
            _log.warning("web.late page=%r error=%s", self._request.url.path, why)
        return Drawn("late", why)


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
        began = time.monotonic()
        least = AT_ONCE
        try:
            async with asyncio.timeout(EVERY):
                await self._subscription.next()
        except TimeoutError:
            return
        except HowdahError:  # a page about a job that is gone is not drawn in a hurry
            least = EVERY
        await asyncio.sleep(max(0.0, began + least - time.monotonic()))


class Live:
    """All pages that somebody looks at."""

    def __init__(self, pages: list[Page]) -> None:
        self._pages = pages
        self._pace = Pace()
        self._pace_of_jobs = Pace()  # each a few rows by their key: they need not wait for a list
        self._took: dict[str, deque[float]] = {}
        self.stages: dict[tuple[str, str], Stage] = {}
        self.route: Route = Route("/live", self._stream, methods=["GET"])

    async def _stream(self, request: Request) -> Response:
        said = request.query_params.get("page", "")
        page, own = self._find(request, said)
        job = page.job(own) if page.job else None

        viewer = Viewer()

        async def watch() -> AsyncGenerator[ServerSentEvent]:
            with self._seat((who_of(request), said), page, own, job, viewer) as stage:
                events = stage.watch(viewer)
                try:
                    async for event in events:
                        yield event
                finally:
                    await events.aclose()

        return EventSourceResponse(
            watch(),
            ping=PING,
            shutdown_event=cast(Any, viewer),
            shutdown_grace_period=GRACE,
        )

    @contextmanager
    def _seat(
        self,
        key: tuple[str, str],
        page: Page,
        request: Request,
        job: UUID | None,
        viewer: Viewer,
    ) -> Generator[Stage]:
        """Take part in a stage, from when the stream begins: who is gone by then leaves nothing."""
        stage = self.stages.get(key)
        if stage is None:
            pace = self._pace if job is None else self._pace_of_jobs
            took = self._took_by(key[1])
            stage = self.stages[key] = Stage(page, request, job, pace, took)
        stage.viewers.add(viewer)
        try:
            yield stage
        finally:
            stage.viewers.discard(viewer)
            if not stage.viewers:
                del self.stages[key]
                stage.close()

    def _took_by(self, said: str) -> deque[float]:
        """Return how long a page took of late, also when it was closed in between."""
        took = self._took.pop(said, None) or deque[float](maxlen=REMEMBERED)
        self._took[said] = took
        while len(self._took) > KNOWN:
            del self._took[next(iter(self._took))]
        return took

    def _find(self, request: Request, said: str) -> tuple[Page, Request]:
        """Find the page of a path with its query, and the request that would have asked for it."""
        parts = urlsplit(said)
        scope = {**request.scope, LIVE: True}
        scope["path"] = outer(request, unquote(parts.path))
        scope["query_string"] = parts.query.encode()
        for page in self._pages:
            match, child = page.matches(scope)
            if match is Match.FULL and page.live:
                return page, Request({**scope, **child})
        raise HTTPException(404, "there is no live page with this path")
