"""A release whose answer is lost: it is not sent again, but by a worker that claims no more.

The job may have come back to the same worker meanwhile, as the same attempt: nothing would tell
that release from a new one. A worker that stops has no strays to look for, so it does send again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import psycopg
import pytest

from howdah import Queue, State
from howdah.claim.claim import Line, claim
from howdah.outcomes import Ending, Release
from howdah.settle import Settler
from tests.stories.proxy import Proxy
from tests.stories.server import PgServer
from tests.support.waiting import eventually

pytestmark = pytest.mark.xdist_group("stories")

WORKER = "worker"


@dataclass
class Stage:
    """A settler that speaks through a proxy, and a look at the database past it."""

    queue: Queue  # through the proxy
    proxy: Proxy
    direct: psycopg.Connection
    stopping: bool = False
    asked: int = 0  # how often the settler was unsure

    def unsure(self) -> bool:
        """Hear that a release got no answer; unless the worker stops, it claims again at once."""
        self.asked += 1
        if not self.stopping:
            claimed = self.direct.execute(
                "select id from howdah.claim_job_batch(%s, '{mail}')", [WORKER]
            ).fetchall()
            assert claimed, "the release was carried out: the job could be claimed again"
        return not self.stopping

    def job(self) -> tuple[str, str | None, int]:
        row = self.direct.execute("select status, worker_id, attempts from howdah.jobs").fetchone()
        assert row is not None
        return row


@pytest.fixture
def direct(own_server: PgServer, database: str) -> Generator[psycopg.Connection]:
    with psycopg.connect(own_server.dsn(database), autocommit=True) as connection:
        yield connection


@pytest.fixture
async def stage(
    own_server: PgServer, database: str, direct: psycopg.Connection
) -> AsyncGenerator[Stage]:
    with Proxy(own_server.port) as proxy:
        dsn = own_server.dsn(database, proxy.ports)
        async with Queue(dsn, call_timeout=timedelta(seconds=10)) as queue:
            yield Stage(queue, proxy, direct)


async def release_unheard(stage: Stage) -> None:
    """Claim a job, release it, lose the answer, and wait until the settler has done with it."""

    async def nothing() -> None: ...

    await stage.queue.enqueue("mail")
    (held,) = await claim(stage.queue.store, WORKER, 1, Line(["mail"]))
    settler = Settler(stage.queue.store, WORKER, nothing, stage.unsure)
    stage.proxy.drop_answer(r"howdah\.release")
    settler.add(Ending(held, Release()))
    running = asyncio.create_task(settler.run())
    try:
        await eventually(lambda: stage.asked == 1, "the answer is lost")
        async with asyncio.timeout(20):
            await settler.flushed()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_it_is_not_sent_again_while_the_worker_claims(stage: Stage) -> None:
    await release_unheard(stage)
    assert stage.job() == (State.CLAIMED, WORKER, 1), "what came back stays ours"


async def test_it_is_sent_again_when_the_worker_stops(stage: Stage) -> None:
    stage.stopping = True
    await release_unheard(stage)
    assert stage.proxy.dropped == 1
    assert stage.job() == (State.PENDING, None, 0)


async def test_a_release_that_never_arrived_is_sent_again_when_the_worker_stops(
    stage: Stage,
) -> None:
    """The session ended before it was carried out: without another one the job stays held."""
    stage.stopping = True

    async def nothing() -> None: ...

    await stage.queue.enqueue("mail")
    (held,) = await claim(stage.queue.store, WORKER, 1, Line(["mail"]))
    settler = Settler(stage.queue.store, WORKER, nothing, stage.unsure)
    stage.direct.execute("begin; lock table howdah.jobs_live in access exclusive mode")
    settler.add(Ending(held, Release()))
    running = asyncio.create_task(settler.run())
    waits = (
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
        "and query ~ 'howdah.release' and wait_event_type = 'Lock'"
    )

    def is_ended() -> bool:
        stage.direct.execute("select pg_stat_clear_snapshot()")  # one transaction sees one state
        return bool(stage.direct.execute(waits).fetchall())

    await eventually(is_ended, "it waits, and is ended")
    await eventually(lambda: stage.asked == 1, "there is no answer")
    assert settler.held() == [(held.id, 1)]
    stage.direct.execute("commit")
    async with asyncio.timeout(20):
        await settler.flushed()
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    assert stage.job() == (State.PENDING, None, 0)
