"""Live pages: an open page is updated, viewers share its renderings, and errors do not end it."""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from playwright.async_api import Page as Browsed
from playwright.async_api import expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from howdah import Queue
from howdah.errors import Unreachable
from howdah.observe import TookTooLong
from howdah.store import query
from howdah.web import live
from howdah.web.context import DashboardContext, Settings
from howdah.web.live import Live, LoadLimiter
from howdah.web.page import PageRoute
from howdah.web.visitor import Visitor, admit
from tests.support.waiting import eventually
from tests.web.serving import served_app

Event = tuple[str, str]


class Scripted(PageRoute):
    """A page that is rendered by a function of the test."""

    def __init__(
        self, draw: Callable[[], Awaitable[str]], job: Callable[[Request], UUID] | None = None
    ) -> None:
        super().__init__("/scripted", "", _nothing, job=job)
        self._script = draw

    async def render_main(self, request: Request) -> str:
        return await self._script()


async def _nothing(context: DashboardContext, request: Request) -> dict[str, Any]:
    raise AssertionError("the page is scripted")


class Script:
    """Renders the given texts in order and then repeats the last; an exception is raised."""

    def __init__(self, *acts: str | Exception) -> None:
        self._acts = list(acts)
        self.drawn = 0

    async def __call__(self) -> str:
        self.drawn += 1
        act = self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
        if isinstance(act, Exception):
            raise act
        return act


class Authenticated:
    """Authenticates the user that a header names, in place of the auth middleware."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admit(scope, Visitor(Request(scope).headers.get("who", "somebody"), ""))
        await self._app(scope, receive, send)


class ServedPage:
    """A live page on a port, and the streams of its viewers."""

    def __init__(self, live_pages: Live, client: httpx.AsyncClient) -> None:
        self.live = live_pages
        self._client = client

    @asynccontextmanager
    async def viewer(self, who: str = "somebody") -> AsyncGenerator[Viewer]:
        async with self._client.stream(
            "GET", "/live", params={"page": "/scripted"}, headers={"who": who}
        ) as response:
            assert response.status_code == 200
            yield Viewer(response)


class Viewer:
    """One open stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> Event | None:
        """Return the next event, or None when the stream has ended."""
        name, data = "", list[str]()
        async with asyncio.timeout(15):
            async for line in self._lines:
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    data.append(value)
                elif not line and name:
                    return name, "\n".join(data)
        return None


@asynccontextmanager
async def served_page(
    queue: Queue,
    draw: Callable[[], Awaitable[str]],
    job: Callable[[Request], UUID] | None = None,
) -> AsyncGenerator[ServedPage]:
    live_pages = Live([Scripted(draw, job)])
    app = Starlette(routes=[live_pages.route])
    app.state.context = DashboardContext(queue, Settings())
    async with (
        served_app(Authenticated(app)) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as client,
    ):
        yield ServedPage(live_pages, client)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render often: these tests check the content, not the rate."""
    monkeypatch.setattr(live, "INTERVAL", 0.01)
    monkeypatch.setattr(live, "EVENT_INTERVAL", 0.01)


async def test_an_open_page_shows_later_changes(page: Browsed, queue: Queue) -> None:
    await expect(page.get_by_role("link", name="letters")).to_have_count(0)
    await queue.enqueue("letters")
    await expect(page.get_by_role("link", name="letters")).to_be_visible()


async def test_many_viewers_share_one_live_page(queue: Queue) -> None:
    text = "one"

    async def draw() -> str:
        return text

    async with served_page(queue, draw) as served:
        streams = [served.viewer() for _ in range(20)]
        viewers = [await stream.__aenter__() for stream in streams]
        (live_page,) = served.live.live_pages.values()
        assert [await viewer.next() for viewer in viewers] == [("draw", "one")] * 20
        assert len(live_page.viewers) == 20
        text = "two"
        assert [await viewer.next() for viewer in viewers] == [("draw", "two")] * 20
        for stream in streams[:19]:
            await stream.__aexit__(None, None, None)
        await eventually(lambda: len(live_page.viewers) == 1)
        text = "three"
        assert await viewers[19].next() == ("draw", "three")  # the remaining viewer gets updates
        await streams[19].__aexit__(None, None, None)
        await eventually(lambda: not served.live.live_pages)


async def test_a_live_page_ends_with_its_last_viewer(queue: Queue) -> None:
    script = Script("a", "b", "c")
    async with served_page(queue, script) as served:
        async with served.viewer() as viewer:
            assert await viewer.next() == ("draw", "a")
            assert _live_pages() == 1
        await eventually(lambda: not served.live.live_pages and _live_pages() == 0)
        async with served.viewer() as viewer:  # and starts again
            assert (await viewer.next() or ("",))[0] == "draw"
        await eventually(lambda: _live_pages() == 0)


def _live_pages() -> int:
    return sum(task.get_name() == "howdah-web-live-page" for task in asyncio.all_tasks())


async def test_a_viewer_who_leaves_before_the_stream_starts_leaves_no_live_page(
    queue: Queue,
) -> None:
    async with served_page(queue, Script("a")) as served:
        scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": "/live",
            "query_string": b"page=/scripted",
            "headers": [],
            "state": {"who": "somebody"},
        }
        await served.live.route.endpoint(Request(scope))  # the answer is never sent
        assert served.live.live_pages == {}


async def test_a_page_that_did_not_change_is_not_sent_again(queue: Queue) -> None:
    script = Script("same", "same", "same", "other")
    async with served_page(queue, script) as served, served.viewer() as viewer:
        assert await viewer.next() == ("draw", "same")
        assert await viewer.next() == ("draw", "other")
        assert script.drawn >= 4


async def test_users_do_not_share_a_live_page(queue: Queue) -> None:
    async with (
        served_page(queue, Script("a")) as served,
        served.viewer("anna") as first,
        served.viewer("bert") as second,
    ):
        assert await first.next() == await second.next() == ("draw", "a")
        assert len(served.live.live_pages) == 2


async def test_an_error_in_a_rendering_is_logged_and_the_next_rendering_is_sent(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script("before", KeyError("ours"), KeyError("ours"), "after")
    async with served_page(queue, script) as served, served.viewer() as viewer:
        assert await viewer.next() == ("draw", "before")
        assert await viewer.next() == ("late", live.CRASHED)
        assert await viewer.next() == ("draw", "after")
    logged = [record for record in caplog.records if "web.broken" in record.message]
    assert len(logged) == 1  # a repeated error is logged once
    assert logged[0].levelno == logging.ERROR
    assert logged[0].exc_info is not None


async def test_a_slow_database_is_reported_until_it_answers(queue: Queue) -> None:
    late = TookTooLong("the database did not answer within 2 s")
    async with (
        served_page(queue, Script("same", late, "same")) as served,
        served.viewer() as viewer,
    ):
        assert await viewer.next() == ("draw", "same")
        assert await viewer.next() == ("late", "the database did not answer within 2 s")
        assert await viewer.next() == ("draw", "same")  # so that the page shows that it is current


async def test_a_live_page_that_fails_ends_its_streams_and_is_logged(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(id: UUID) -> None:
        raise RuntimeError("no room")

    id = uuid4()
    monkeypatch.setattr(queue.follower, "subscribe", refuse)
    async with served_page(queue, Script("a"), lambda _: id) as served:
        async with served.viewer() as viewer:
            assert await viewer.next() is None  # the browser reconnects
        await eventually(lambda: not served.live.live_pages)
    assert "web.broken" in caplog.text


async def test_an_event_of_its_job_updates_a_page_immediately(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "INTERVAL", 3600.0)
    id = (await queue.enqueue("letters")).id

    async def draw() -> str:
        return await queue.store.fetchval("select status from howdah.jobs where id = $1", id)

    async with served_page(queue, draw, lambda _: id) as served, served.viewer() as viewer:
        assert await viewer.next() == ("draw", "pending")
        await queue.cancel([id])
        assert await viewer.next() == ("draw", "cancelled")


async def test_a_stream_has_a_maximum_lifetime_so_that_access_is_checked_again(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "STREAM_LIFETIME", 0.0)
    async with served_page(queue, Script("a")) as served:
        async with served.viewer() as viewer:
            events = [event async for event in _until_end(viewer)]
        assert events in ([], [("draw", "a")])
        await eventually(lambda: not served.live.live_pages)


async def _until_end(viewer: Viewer) -> AsyncGenerator[Event]:
    while (event := await viewer.next()) is not None:
        yield event


async def test_an_unknown_page_has_no_stream(client: httpx.AsyncClient) -> None:
    for path in ("/nowhere", "", "//types", "/live", "/static/howdah.css"):
        assert (await client.get("/live", params={"page": path})).status_code == 404


class Clock:
    """A clock that only sleep moves forward."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        monkeypatch.setattr(live.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(live.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def spend(seconds: float) -> None:
    """Report this much time of the database as spent."""
    query.add_cost(seconds)


@pytest.mark.parametrize("share", [1.0, live.LIST_SHARE, live.JOB_SHARE])
async def test_all_renderings_together_use_a_fiftieth_of_the_time(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        limiter = LoadLimiter(share)
        quick, slow = deque[float](maxlen=5), deque[float](maxlen=5)
        began, spent = clock.now, 0.0
        for n in range(200):
            costs, seconds = (quick, 0.005) if n % 2 else (slow, 0.04)
            async with limiter.turn(costs):
                spend(seconds)
                clock.now += 3 * seconds  # the round trip and the rendering
            spent += seconds
        passed = clock.now - began
    assert spent / passed < 0.0205 * share  # the last rest is not over yet
    assert spent / passed > 0.015 * share  # and the rests are not longer than needed


def test_the_shares_of_lists_and_jobs_do_not_exceed_the_total() -> None:
    assert live.LIST_SHARE + live.JOB_SHARE <= 1


async def test_one_slow_rendering_does_not_stop_a_page_and_is_still_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        limiter = LoadLimiter()
        costs = deque([0.002] * 4, maxlen=5)
        longest, began, spent = 0.0, clock.now, 0.0
        for seconds in (0.002, 0.5, *[0.002] * 10):
            before = clock.now
            async with limiter.turn(costs):
                spend(seconds)
            longest, spent = max(longest, clock.now - before), spent + seconds
        passed = clock.now - began
    assert longest < 50 * 0.5 / 4
    assert spent / passed < 0.021


async def test_a_page_that_is_opened_again_keeps_its_rate_limit(queue: Queue) -> None:
    async with served_page(queue, Script("a")) as served:
        for _ in range(2):
            async with served.viewer() as viewer:
                assert await viewer.next() == ("draw", "a")
            await eventually(lambda: not served.live.live_pages)
        async with served.viewer() as viewer:
            assert await viewer.next() == ("draw", "a")
            (live_page,) = served.live.live_pages.values()
            assert len(live_page.costs) >= 3


async def test_an_unreachable_database_is_tried_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        limiter = LoadLimiter()
        costs = deque([10.0, 10.0], maxlen=5)
        with suppress(Unreachable):
            async with limiter.turn(costs):
                spend(10.0)
                raise Unreachable("no connection")
        began = clock.now
        async with limiter.turn(costs):
            assert clock.now == began


@pytest.mark.timeout(60)
async def test_the_server_stops_cleanly_with_an_open_stream(dsn: str) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "howdah", "web", "--dsn", dsn, "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert server.stdout is not None
    try:
        output = ""
        while (link := re.search(r"http://\S+/link\S+", output)) is None:
            output += (await server.stdout.readline()).decode()
        async with httpx.AsyncClient(timeout=20, follow_redirects=True) as client:
            await client.get(link[0])
            stream_url = httpx.URL(link[0]).copy_with(path="/live", query=b"page=/")
            async with client.stream("GET", stream_url) as response:
                viewer = Viewer(response)
                assert (await viewer.next() or ("",))[0] == "draw"
                server.send_signal(signal.SIGTERM)
                while await viewer.next() is not None:
                    pass  # raises if the stream is cut off
        output += (await server.stdout.read()).decode()
        assert await server.wait() == 0
        assert "rror" not in output
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
