"""Live: a page that is left open is drawn again when it changed, and not too often.

Comes after  page.py

The browser opens one stream and names its page. Everybody who looks at the same page shares one
`Stage`, which draws it once a second at most, or at once when the job it is about has news, and
sends it on only when it differs from what was sent before. A drawing that fails is told as `late`
and tried again; the page stays as it was. A stage ends when nobody looks.

Drawings keep the database busy for a fiftieth of the time at most, however many look: after each
one nobody draws for 50 times as long as its looks cost. Lists and pages of single jobs have each a
share of that, so that progress moves beside a heavy list. bench/dashboard.py measures it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple, cast
from urllib.parse import unquote
from uuid import UUID

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route

from howdah.errors import HowdahError, Unreachable
from howdah.store.query import spending
from howdah.web.desk import Desk, desk_of, quoted
from howdah.web.page import Page
from howdah.web.paths import root_of
from howdah.web.recent import LIVE
from howdah.web.visitor import visitor_of, who_of

_log = logging.getLogger("howdah.web")

EVERY = 1.0  # seconds between two drawings of one page that has no news of its own
AT_ONCE = 0.2  # and of one that has
REST = 50  # times as long as a drawing kept the database busy
OF_LISTS, OF_JOBS = 0.7, 0.3  # what each may have of that
REMEMBERED = 5  # drawings of one page, whose mean counts: one hiccup does not stop the page
KNOWN = 1000  # pages whose drawings are remembered
OWED = 1.0  # seconds of rest that may be owed: a page that seldom draws need not wait for others
LONGEST_REST = 60.0  # for one drawing, so that a bad minute does not stop the page for an hour
PING = 15  # seconds after which a silent stream says that it is there
LASTS = 900.0  # seconds, then the browser asks anew: whoever may no longer enter sees no more
GRACE = 1.0  # seconds in which a stream ends in order when the server stops
MISTAKE = "the dashboard made a mistake; its log tells which"


class Pace:
    """Lets one draw at a time, and lets all rest in proportion to what drawings cost."""

    def __init__(self, share: float = 1.0) -> None:
        self._share = share
        self._lock = asyncio.Lock()
        self._paid_at = 0.0

    @asynccontextmanager
    async def turn(self, costs: deque[float]) -> AsyncGenerator[None]:
        """Wait for the turn of a page; `costs` are what its last drawings cost."""
        async with self._lock:
            await asyncio.sleep(max(0.0, self._paid_at - OWED - time.monotonic()))
            with spending() as spent:
                try:
                    yield
                except Unreachable:  # a database that is away is not spared by asking it seldom
                    spent.seconds = 0.0
                    costs.clear()
                    raise
                finally:
                    costs.append(spent.seconds)
                    rest = REST / self._share * sum(costs) / len(costs)
                    now = max(self._paid_at, time.monotonic())
                    self._paid_at = now + min(rest, LONGEST_REST)


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
        self, page: Page, request: Request, job: UUID | None, pace: Pace, costs: deque[float]
    ) -> None:
        self.viewers: set[Viewer] = set()
        self._page = page
        self._request = request
        self._job = job
        self._pace = pace
        self.costs: deque[float] = costs
        self._drawn = Drawn("", "")
        self._number = 0
        self._task = asyncio.create_task(self._draw_for_ever(), name="howdah-web-stage")

    def close(self) -> None:
        """Stop drawing."""
        self._task.cancel()

    async def watch(
        self, viewer: Viewer, stays: Callable[[], bool]
    ) -> AsyncGenerator[ServerSentEvent]:
        """Send the page whenever it changed, for as long as a stream or its session lasts."""
        seen, until = 0, time.monotonic() + LASTS
        while not (viewer.left or self._task.done()):
            if self._number != seen:
                if not stays():
                    return
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
            _log.exception("web.broken path=%s", quoted(self._request.url.path))
        finally:
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        for viewer in self.viewers:
            viewer.wake()

    async def _draw(self) -> Drawn:
        try:
            async with self._pace.turn(self.costs):
                return Drawn("draw", await self._page.draw_main(self._request))
        except HowdahError as error:
            return self._late(str(error))
        except HTTPException as error:
            return self._late(error.detail)
        except Exception:
            if self._drawn.data != MISTAKE:
                _log.exception("web.broken path=%s", quoted(self._request.url.path))
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
        self._pace = Pace(OF_LISTS)
        self._pace_of_jobs = Pace(OF_JOBS)
        self._costs: dict[str, deque[float]] = {}
        self.stages: dict[tuple[str, str], Stage] = {}
        self.route: Route = Route("/live", self._stream, methods=["GET"])

    async def _stream(self, request: Request) -> Response:
        said = request.query_params.get("page", "")
        page, own = self._find(request, said)
        job = page.job(own) if page.job else None

        viewer = Viewer()

        async def watch() -> AsyncGenerator[ServerSentEvent]:
            with self._seat((who_of(request), said), page, own, job, viewer) as stage:
                events = stage.watch(viewer, visitor_of(request).stays)
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
            costs = self._costs_of(key[1])
            stage = self.stages[key] = Stage(page, request, job, pace, costs)
        stage.viewers.add(viewer)
        try:
            yield stage
        finally:
            stage.viewers.discard(viewer)
            if not stage.viewers:
                del self.stages[key]
                stage.close()

    def _costs_of(self, said: str) -> deque[float]:
        """Return what a page cost of late, also when it was closed in between."""
        costs = self._costs.pop(said, None) or deque[float](maxlen=REMEMBERED)
        self._costs[said] = costs
        while len(self._costs) > KNOWN:
            del self._costs[next(iter(self._costs))]
        return costs

    def _find(self, request: Request, said: str) -> tuple[Page, Request]:
        """Find the page of a path with its query, and the request that would have asked for it."""
        path, _, query = said.partition("?")
        scope = {**request.scope, LIVE: True}
        scope["path"] = root_of(scope) + unquote(path)
        scope["query_string"] = query.encode()
        for page in self._pages:
            match, child = page.matches(scope)
            if match is Match.FULL and page.live:
                return page, Request({**scope, **child})
        raise HTTPException(404, "there is no live page with this path")
