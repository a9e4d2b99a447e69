"""When the database is back, the first part of a worker that reaches it wakes all the others.

The heartbeat tries again every quarter of a second, so it is the first. The pauses of all other
parts last an hour here.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Generator
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import JobContext, Queue, State
from howdah.growing_pause import GrowingPause
from howdah.reachable import Reachable
from tests.support.postgres_server import PgServer
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("waiting")]

AN_HOUR = 3600.0
PARTS = {"claim.waiting", "settle.waiting", "flush.waiting", "upkeep.waiting"}


@pytest.fixture
def server(tmp_path: Path) -> Generator[PgServer]:
    server = PgServer(tmp_path).make().start()
    yield server
    server.crash()


@pytest.fixture(params=["listens", "polls"])
async def queue(server: PgServer, request: pytest.FixtureRequest) -> AsyncGenerator[Queue]:
    async with Queue(server.dsn(), pgbouncer=request.param == "polls") as opened:
        await opened.install()
        yield opened


@pytest.fixture
def pauses_of_an_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every pause but the first after an announcement last an hour."""
    init, next_pause = GrowingPause.__init__, GrowingPause.next

    def short_first(
        pause: GrowingPause, first: float, longest: float, reachable: Reachable | None = None
    ) -> None:
        init(pause, 0.01, AN_HOUR, reachable)

    def then_an_hour(pause: GrowingPause) -> float:
        seconds = next_pause(pause)
        pause._next = AN_HOUR  # pyright: ignore[reportPrivateUsage]
        return seconds

    monkeypatch.setattr(GrowingPause, "__init__", short_first)
    monkeypatch.setattr(GrowingPause, "next", then_an_hour)


@pytest.mark.usefixtures("pauses_of_an_hour")
async def test_all_parts_go_on_when_one_reaches_the_database_again(
    queue: Queue, server: PgServer, caplog: pytest.LogCaptureFixture
) -> None:
    reports, may_end, progress = asyncio.Event(), asyncio.Event(), 1

    @queue.job
    async def short() -> None:
        await may_end.wait()

    @queue.job
    async def reporter(ctx: JobContext) -> None:
        while True:
            await ctx.progress(progress)
            reports.set()
            await asyncio.sleep(0.01)

    def pausing() -> set[str]:
        return set(re.findall(r"(\w+\.\w+) (?:endings=1 )?(?:error=.*)?retry_in=3600", caplog.text))

    parts = PARTS | {"listen.lost"} if queue.store.can_listen else PARTS
    job, reporting = await short.enqueue(), await reporter.enqueue()
    worker = queue.worker(poll=0.05, upkeep_every=0.05, grace=0, silent_after=1)
    with caplog.at_level(logging.WARNING):
        async with worker:
            await reports.wait()
            await asyncio.to_thread(server.stop)
            may_end.set()
            progress = 50
            await eventually(lambda: pausing() >= parts, lambda: f"pausing: {pausing()}")
            await asyncio.to_thread(server.start)

            async def is_completed() -> bool:
                return (await queue.get(job.id)).status is State.COMPLETED

            await eventually(is_completed, "the settler goes on")
            late = await queue.enqueue("short", {}, delay=timedelta(milliseconds=1))
            await late.result(timeout=20)  # upkeep and the claim loop go on
            progress = 77

            async def shows_progress() -> bool:
                return (await queue.get(reporting.id)).progress == 77

            await eventually(shows_progress, "the flusher goes on")
            hears = worker._started().claim_loop.hears  # pyright: ignore[reportPrivateUsage]
            assert hears is queue.store.can_listen
