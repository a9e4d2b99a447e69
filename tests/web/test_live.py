"""Live: an open page shows what happens, shares its drawings, and survives what goes wrong."""

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
from howdah.web.desk import Desk, Settings
from howdah.web.live import Live, Pace
from howdah.web.page import Page
from howdah.web.visitor import Visitor, admit
from tests.support.waiting import eventually
from tests.web.serving import served_app

Event = tuple[str, str]


class Scripted(Page):
    """A page that is drawn by a function of the test."""

    def __init__(
        self, draw: Callable[[], Awaitable[str]], job: Callable[[Request], UUID] | None = None
    ) -> None:
        super().__init__("/scripted", "", _nothing, job=job)
        self._script = draw

    async def draw_main(self, request: Request) -> str:
        return await self._script()


async def _nothing(desk: Desk, request: Request) -> dict[str, Any]:
    raise AssertionError("the page is scripted")


class Script:
    """What a page draws next; it stays at the last."""

    def __init__(self, *acts: str | Exception) -> None:
        self._acts = list(acts)
        self.drawn = 0

    async def __call__(self) -> str:
        self.drawn += 1
        act = self._acts.pop(0) if len(self._acts) > 1 else self._acts[0]
        if isinstance(act, Exception):
            raise act
        return act


class Named:
    """Says who asks, as the gate does, by a header."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        admit(scope, Visitor(Request(scope).headers.get("who", "somebody"), ""))
        await self._app(scope, receive, send)


class Theatre:
    """A live page on a port, and the streams of those who look at it."""

    def __init__(self, stages: Live, client: httpx.AsyncClient) -> None:
        self.live = stages
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
async def theatre(
    queue: Queue,
    draw: Callable[[], Awaitable[str]],
    job: Callable[[Request], UUID] | None = None,
) -> AsyncGenerator[Theatre]:
    stages = Live([Scripted(draw, job)])
    app = Starlette(routes=[stages.route])
    app.state.desk = Desk(queue, Settings())
    async with (
        served_app(Named(app)) as url,
        httpx.AsyncClient(base_url=url, timeout=20) as client,
    ):
        yield Theatre(stages, client)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw often: what is tested here is who sees what, not how seldom."""
    monkeypatch.setattr(live, "EVERY", 0.01)
    monkeypatch.setattr(live, "AT_ONCE", 0.01)


async def test_an_open_page_shows_what_comes_later(page: Browsed, queue: Queue) -> None:
    await expect(page.get_by_role("link", name="letters")).to_have_count(0)
    await queue.enqueue("letters")
    await expect(page.get_by_role("link", name="letters")).to_be_visible()


async def test_many_viewers_share_one_stage(queue: Queue) -> None:
    text = "one"

    async def draw() -> str:
        return text

    async with theatre(queue, draw) as shown:
        streams = [shown.viewer() for _ in range(20)]
        viewers = [await stream.__aenter__() for stream in streams]
        (stage,) = shown.live.stages.values()
        assert [await viewer.next() for viewer in viewers] == [("draw", "one")] * 20
        assert len(stage.viewers) == 20
        text = "two"
        assert [await viewer.next() for viewer in viewers] == [("draw", "two")] * 20
        for stream in streams[:19]:
            await stream.__aexit__(None, None, None)
        await eventually(lambda: len(stage.viewers) == 1)
        text = "three"
        assert await viewers[19].next() == ("draw", "three")  # who stays sees more
        await streams[19].__aexit__(None, None, None)
        await eventually(lambda: not shown.live.stages)


async def test_a_stage_ends_when_nobody_looks(queue: Queue) -> None:
    script = Script("a", "b", "c")
    async with theatre(queue, script) as shown:
        async with shown.viewer() as viewer:
            assert await viewer.next() == ("draw", "a")
            assert _stages() == 1
        await eventually(lambda: not shown.live.stages and _stages() == 0)
        async with shown.viewer() as viewer:  # and begins anew
            assert (await viewer.next() or ("",))[0] == "draw"
        await eventually(lambda: _stages() == 0)


def _stages() -> int:
    return sum(task.get_name() == "howdah-web-stage" for task in asyncio.all_tasks())


async def test_whoever_is_gone_before_the_stream_begins_leaves_nothing(queue: Queue) -> None:
    async with theatre(queue, Script("a")) as shown:
        scope: Scope = {
            "type": "http",
            "method": "GET",
            "path": "/live",
            "query_string": b"page=/scripted",
            "headers": [],
            "state": {"who": "somebody"},
        }
        await shown.live.route.endpoint(Request(scope))  # the answer is never sent
        assert shown.live.stages == {}


async def test_a_page_that_did_not_change_is_not_sent_again(queue: Queue) -> None:
    script = Script("same", "same", "same", "other")
    async with theatre(queue, script) as shown, shown.viewer() as viewer:
        assert await viewer.next() == ("draw", "same")
        assert await viewer.next() == ("draw", "other")
        assert script.drawn >= 4


async def test_people_do_not_share_what_is_drawn_for_one(queue: Queue) -> None:
    async with (
        theatre(queue, Script("a")) as shown,
        shown.viewer("anna") as hers,
        shown.viewer("bert") as his,
    ):
        assert await hers.next() == await his.next() == ("draw", "a")
        assert len(shown.live.stages) == 2


async def test_a_mistake_in_a_drawing_is_logged_and_the_next_one_shown(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script("before", KeyError("ours"), KeyError("ours"), "after")
    async with theatre(queue, script) as shown, shown.viewer() as viewer:
        assert await viewer.next() == ("draw", "before")
        assert await viewer.next() == ("late", live.MISTAKE)
        assert await viewer.next() == ("draw", "after")
    logged = [record for record in caplog.records if "web.broken" in record.message]
    assert len(logged) == 1  # one mistake that goes on is one line
    assert logged[0].levelno == logging.ERROR
    assert logged[0].exc_info is not None


async def test_a_database_that_is_late_is_told_until_it_answers(queue: Queue) -> None:
    late = TookTooLong("the database did not answer within 2 s")
    async with theatre(queue, Script("same", late, "same")) as shown, shown.viewer() as viewer:
        assert await viewer.next() == ("draw", "same")
        assert await viewer.next() == ("late", "the database did not answer within 2 s")
        assert await viewer.next() == ("draw", "same")  # so that the page knows it is not old


async def test_a_stage_that_breaks_ends_its_streams_and_says_so(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(id: UUID) -> None:
        raise RuntimeError("no room")

    id = uuid4()
    monkeypatch.setattr(queue.follower, "subscribe", refuse)
    async with theatre(queue, Script("a"), lambda _: id) as shown:
        async with shown.viewer() as viewer:
            assert await viewer.next() is None  # the browser opens another stream by itself
        await eventually(lambda: not shown.live.stages)
    assert "web.broken" in caplog.text


async def test_news_of_its_job_draw_a_page_at_once(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "EVERY", 3600.0)
    id = (await queue.enqueue("letters")).id

    async def draw() -> str:
        return await queue.store.fetchval("select status from howdah.jobs where id = $1", id)

    async with theatre(queue, draw, lambda _: id) as shown, shown.viewer() as viewer:
        assert await viewer.next() == ("draw", "pending")
        await queue.cancel([id])
        assert await viewer.next() == ("draw", "cancelled")


async def test_a_stream_ends_now_and_then_so_that_its_viewer_is_asked_again(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LASTS", 0.0)
    async with theatre(queue, Script("a")) as shown:
        async with shown.viewer() as viewer:
            seen = [event async for event in _until_end(viewer)]
        assert seen in ([], [("draw", "a")])
        await eventually(lambda: not shown.live.stages)


async def _until_end(viewer: Viewer) -> AsyncGenerator[Event]:
    while (event := await viewer.next()) is not None:
        yield event


async def test_an_unknown_page_has_no_stream(client: httpx.AsyncClient) -> None:
    for said in ("/nowhere", "", "//types", "/live", "/static/howdah.css"):
        assert (await client.get("/live", params={"page": said})).status_code == 404


class Clock:
    """Time that passes when somebody waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.monotonic()
        monkeypatch.setattr(live.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(live.asyncio, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


def spend(seconds: float) -> None:
    """Keep the database busy, as far as anybody knows."""
    query._count(seconds, 0.0)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("share", [1.0, live.OF_LISTS, live.OF_JOBS])
async def test_all_drawings_together_cost_a_fiftieth_of_the_time(
    monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        pace = Pace(share)
        quick, slow = deque[float](maxlen=5), deque[float](maxlen=5)
        began, spent = clock.now, 0.0
        for n in range(200):
            costs, seconds = (quick, 0.005) if n % 2 else (slow, 0.04)
            async with pace.turn(costs):
                spend(seconds)
                clock.now += 3 * seconds  # the way there and back, and the drawing itself
            spent += seconds
        passed = clock.now - began
    assert spent / passed < 0.0205 * share  # the last rest is still owed
    assert spent / passed > 0.015 * share  # and no longer rest than that


def test_lists_and_jobs_together_have_no_more_than_all() -> None:
    assert live.OF_LISTS + live.OF_JOBS <= 1


async def test_one_hiccup_does_not_stop_a_page_and_is_paid_for_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        pace = Pace()
        costs = deque([0.002] * 4, maxlen=5)
        longest, began, spent = 0.0, clock.now, 0.0
        for seconds in (0.002, 0.5, *[0.002] * 10):
            before = clock.now
            async with pace.turn(costs):
                spend(seconds)
            longest, spent = max(longest, clock.now - before), spent + seconds
        passed = clock.now - began
    assert longest < 50 * 0.5 / 4
    assert spent / passed < 0.021


async def test_a_page_that_is_opened_again_is_not_taken_for_a_quick_one(queue: Queue) -> None:
    async with theatre(queue, Script("a")) as shown:
        for _ in range(2):
            async with shown.viewer() as viewer:
                assert await viewer.next() == ("draw", "a")
            await eventually(lambda: not shown.live.stages)
        async with shown.viewer() as viewer:
            assert await viewer.next() == ("draw", "a")
            (stage,) = shown.live.stages.values()
            assert len(stage.costs) >= 3


async def test_a_database_that_is_away_is_asked_again_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        clock = Clock(patched)
        pace = Pace()
        costs = deque([10.0, 10.0], maxlen=5)
        with suppress(Unreachable):
            async with pace.turn(costs):
                spend(10.0)
                raise Unreachable("no connection")
        began = clock.now
        async with pace.turn(costs):
            assert clock.now == began


@pytest.mark.timeout(60)
async def test_the_server_stops_in_order_although_somebody_looks(dsn: str) -> None:
    server = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "howdah", "web", "--dsn", dsn, "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert server.stdout is not None
    try:
        said = ""
        while (link := re.search(r"http://\S+/enter\S+", said)) is None:
            said += (await server.stdout.readline()).decode()
        async with httpx.AsyncClient(timeout=20, follow_redirects=True) as client:
            await client.get(link[0])
            where = httpx.URL(link[0]).copy_with(path="/live", query=b"page=/")
            async with client.stream("GET", where) as response:
                viewer = Viewer(response)
                assert (await viewer.next() or ("",))[0] == "draw"
                server.send_signal(signal.SIGTERM)
                while await viewer.next() is not None:
                    pass  # a stream that is cut off instead of ended raises here
        said += (await server.stdout.read()).decode()
        assert await server.wait() == 0
        assert "rror" not in said
    finally:
        if server.returncode is None:
            server.kill()
            await server.wait()
