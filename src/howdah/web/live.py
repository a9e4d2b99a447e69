"""Live: update open pages when they change, at a bounded cost for the database.

A browser opens one stream and names its page. All viewers of one page share one `LivePage`. It
renders the page at most once a second, or at once on an event of its job, and sends it if it
differs. A rendering that fails is sent as `late` and tried again; the page stays as it was.

Renderings use at most a fiftieth of the database's time: after each one, all pages wait 50 times as
long as its queries took. Lists and single jobs have separate shares, so that progress moves beside
a slow list. bench/observe_dashboard.py measures it.
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
from howdah.observe.rest import recent_costs, rest_after
from howdah.store.query import server_time
from howdah.web.cache import LIVE
from howdah.web.context import DashboardContext, context_of, quoted
from howdah.web.page import PageRoute
from howdah.web.paths import root_of
from howdah.web.visitor import visitor_of, who_of

_log = logging.getLogger("howdah.web")

INTERVAL = 1.0  # seconds between two renderings of a page
EVENT_INTERVAL = 0.2  # the same, after an event of its job
LIST_SHARE, JOB_SHARE = 0.7, 0.3  # of the database time that renderings may use
PAGES_KEPT = 1000  # pages whose costs are kept
MAX_DEBT = 1.0  # seconds of rest that may be pending when a page is rendered
MAX_REST = 60.0  # seconds after one rendering
PING = 15  # seconds between keep-alive messages
STREAM_LIFETIME = 900.0  # seconds; then the browser reconnects and is authenticated again
GRACE = 1.0  # seconds for a stream to end when the server stops
CRASHED = "the dashboard has an error: its log has the traceback"


class LoadLimiter:
    """Allows one rendering at a time, and then a rest in proportion to its cost."""

    def __init__(self, share: float = 1.0) -> None:
        self._share = share
        self._lock = asyncio.Lock()
        self._rest_until = 0.0

    @asynccontextmanager
    async def turn(self, costs: deque[float]) -> AsyncGenerator[None]:
        """Wait for the turn of a page; `costs` are the costs of its last renderings."""
        async with self._lock:
            await asyncio.sleep(max(0.0, self._rest_until - MAX_DEBT - time.monotonic()))
            with server_time() as spent:
                try:
                    yield
                except Unreachable:  # a failed connection costs the database nothing
                    spent.seconds = 0.0
                    costs.clear()
                    raise
                finally:
                    costs.append(spent.seconds)
                    rest = rest_after(costs, self._share)
                    now = max(self._rest_until, time.monotonic())
                    self._rest_until = now + min(rest, MAX_REST)


class Message(NamedTuple):
    """An event of the stream: `draw` with the page, or `late` with the reason."""

    event: str
    data: str


class Viewer:
    """One open stream."""

    def __init__(self) -> None:
        self.left: bool = False
        self._woken = asyncio.Event()

    def wake(self) -> None:
        self._woken.set()

    def set(self) -> None:
        """End the stream. sse-starlette calls this when the server stops."""
        self.left = True
        self.wake()

    async def wait(self, until: float) -> bool:
        """Wait for a message; False if none came until then."""
        self._woken.clear()
        try:
            async with asyncio.timeout(until - time.monotonic()):
                await self._woken.wait()
        except TimeoutError:
            return False
        return True


class LivePage:
    """One page, rendered for all its viewers."""

    def __init__(
        self,
        page: PageRoute,
        request: Request,
        job: UUID | None,
        limiter: LoadLimiter,
        costs: deque[float],
    ) -> None:
        self.viewers: set[Viewer] = set()
        self._page = page
        self._request = request
        self._job = job
        self._limiter = limiter
        self.costs: deque[float] = costs
        self._message = Message("", "")
        self._number = 0
        self._task = asyncio.create_task(self._run(), name="howdah-web-live-page")

    def close(self) -> None:
        """Stop rendering."""
        self._task.cancel()

    async def watch(
        self, viewer: Viewer, still_valid: Callable[[], bool]
    ) -> AsyncGenerator[ServerSentEvent]:
        """Send the page when it changed, until the stream or its session ends."""
        sent_number, until = 0, time.monotonic() + STREAM_LIFETIME
        while not (viewer.left or self._task.done()):
            if self._number != sent_number:
                if not still_valid():
                    return
                sent_number, message = self._number, self._message
                yield ServerSentEvent(message.data, event=message.event)
            elif not await viewer.wait(until):
                return

    async def _run(self) -> None:
        try:
            async with RedrawTrigger(context_of(self._request), self._job) as trigger:
                while True:
                    await trigger.wait()  # first: the viewer has just loaded the page
                    message = await self._render()
                    if message != self._message:
                        self._message = message
                        self._number += 1
                        self._wake_viewers()
        except Exception:
            _log.exception("web.broken path=%s", quoted(self._request.url.path))
        finally:
            asyncio.get_running_loop().call_soon(self._wake_viewers)

    def _wake_viewers(self) -> None:
        for viewer in self.viewers:
            viewer.wake()

    async def _render(self) -> Message:
        try:
            async with self._limiter.turn(self.costs):
                return Message("draw", await self._page.render_main(self._request))
        except HowdahError as error:
            return self._late(str(error))
        except HTTPException as error:
            return self._late(error.detail)
        except Exception:
            if self._message.data != CRASHED:
                _log.exception("web.broken path=%s", quoted(self._request.url.path))
            return Message("late", CRASHED)

    def _late(self, reason: str) -> Message:
        """Leave the page as it is; the next rendering may work."""
        if self._message.event != "late":
            _log.warning("web.late page=%r error=%s", self._request.url.path, reason)
        return Message("late", reason)


class RedrawTrigger:
    """Waits until a page should be rendered again."""

    def __init__(self, context: DashboardContext, id: UUID | None) -> None:
        self._subscription = context.queue.follower.subscribe(id) if id is not None else None

    async def __aenter__(self) -> RedrawTrigger:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._subscription is not None:
            self._subscription.close()

    async def wait(self) -> None:
        if self._subscription is None:
            await asyncio.sleep(INTERVAL)
            return
        began = time.monotonic()
        interval = EVENT_INTERVAL
        try:
            async with asyncio.timeout(INTERVAL):
                await self._subscription.next()
        except TimeoutError:
            return
        except HowdahError:  # the job does not exist: there is no hurry
            interval = INTERVAL
        await asyncio.sleep(max(0.0, began + interval - time.monotonic()))


class Live:
    """All open pages."""

    def __init__(self, pages: list[PageRoute]) -> None:
        self._pages = pages
        self._limiter = LoadLimiter(LIST_SHARE)
        self._job_limiter = LoadLimiter(JOB_SHARE)
        self._costs: dict[str, deque[float]] = {}
        self.live_pages: dict[tuple[str, str], LivePage] = {}
        self.route: Route = Route("/live", self._stream, methods=["GET"])

    async def _stream(self, request: Request) -> Response:
        address = request.query_params.get("page", "")
        page, page_request = self._find(request, address)
        job = page.job(page_request) if page.job else None

        viewer = Viewer()

        async def watch() -> AsyncGenerator[ServerSentEvent]:
            with self._join(
                (who_of(request), address), page, page_request, job, viewer
            ) as live_page:
                events = live_page.watch(viewer, visitor_of(request).still_valid)
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
    def _join(
        self,
        key: tuple[str, str],
        page: PageRoute,
        request: Request,
        job: UUID | None,
        viewer: Viewer,
    ) -> Generator[LivePage]:
        """Add a viewer to its live page while the stream is open; the last one ends the page."""
        live_page = self.live_pages.get(key)
        if live_page is None:
            limiter = self._limiter if job is None else self._job_limiter
            costs = self._costs_of(key[1])
            live_page = self.live_pages[key] = LivePage(page, request, job, limiter, costs)
        live_page.viewers.add(viewer)
        try:
            yield live_page
        finally:
            live_page.viewers.discard(viewer)
            if not live_page.viewers:
                del self.live_pages[key]
                live_page.close()

    def _costs_of(self, address: str) -> deque[float]:
        """Return the costs of a page's last renderings, kept while it is closed."""
        costs = self._costs.pop(address, None) or recent_costs()
        self._costs[address] = costs
        while len(self._costs) > PAGES_KEPT:
            del self._costs[next(iter(self._costs))]
        return costs

    def _find(self, request: Request, address: str) -> tuple[PageRoute, Request]:
        """Find the page at a path with a query, and make the request that loads it."""
        path, _, query = address.partition("?")
        scope = {**request.scope, LIVE: True}
        scope["path"] = root_of(scope) + unquote(path)
        scope["query_string"] = query.encode()
        for page in self._pages:
            match, child = page.matches(scope)
            if match is Match.FULL and page.live:
                return page, Request({**scope, **child})
        raise HTTPException(404, "there is no live page with this path: name one in ?page=")
