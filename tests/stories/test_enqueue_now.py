"""An enqueue returns when its job is on disk; the job may begin before that.

A standby that does not exist acts as a slow disk: commits wait for it until the test
ends the wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from howdah import Queue, State
from tests.support.postgres_server import PgServer
from tests.support.waiting import eventually

WAITS = (
    "select count(*) from pg_stat_activity where datname = current_database() "
    "and query ~ 'howdah.enqueue_now' and wait_event = 'SyncRep'"
)


class StalledDisk:
    """A disk for which commits wait, until `go_on`."""

    def __init__(self, server: PgServer) -> None:
        self._server = server

    async def stop(self) -> None:
        await self._set_standby("missing")

    async def go_on(self) -> None:
        await self._set_standby("")

    async def _set_standby(self, standby: str) -> None:
        self._server.value(f"alter system set synchronous_standby_names = '{standby}'")
        self._server.value("select pg_reload_conf()")
        await eventually(
            lambda: self._server.value("show synchronous_standby_names") == standby,
            f"synchronous_standby_names = '{standby}'",
        )

    def callers(self) -> int:
        """Return how many enqueues wait for it."""
        return self._server.value(WAITS)


@pytest.fixture
async def queue(own_server: PgServer) -> AsyncGenerator[Queue]:
    own_server.value("drop schema if exists howdah cascade")
    async with Queue(own_server.dsn()) as queue:
        await queue.install()
        yield queue


@pytest.fixture
async def disk(own_server: PgServer) -> AsyncGenerator[StalledDisk]:
    disk = StalledDisk(own_server)
    yield disk
    await disk.go_on()


async def test_a_job_begins_while_its_caller_waits_for_the_disk(
    queue: Queue, disk: StalledDisk, own_server: PgServer
) -> None:
    began = asyncio.Event()

    @queue.job
    async def work() -> str:
        began.set()
        return "done"

    async with queue.worker():
        await eventually(lambda: own_server.value("select howdah.has_idle_worker()"))
        await disk.stop()
        call = asyncio.create_task(work.enqueue())
        async with asyncio.timeout(20):
            await began.wait()
        await eventually(lambda: disk.callers() == 1, "the caller waits for the disk")
        assert not call.done()
        await disk.go_on()
        handle = await call
        assert await handle.result(timeout=20) == "done"


async def test_without_an_idle_worker_the_job_waits_for_the_disk_too(
    queue: Queue, disk: StalledDisk
) -> None:
    await disk.stop()
    call = asyncio.create_task(queue.enqueue("work"))
    await eventually(lambda: disk.callers() == 1, "the caller waits for the disk")
    assert not call.done()
    assert await queue.jobs(job_type="work") == []
    await disk.go_on()
    assert (await queue.get((await call).id)).status is State.PENDING


async def test_a_cancelled_enqueue_may_have_made_its_job(
    queue: Queue, disk: StalledDisk, own_server: PgServer
) -> None:
    """The answer is lost, but the job exists exactly once."""

    @queue.job
    async def work() -> str:
        return "done"

    async with queue.worker(), Queue(own_server.dsn()) as caller:
        await eventually(lambda: own_server.value("select howdah.has_idle_worker()"))
        await disk.stop()
        call = asyncio.create_task(caller.enqueue("work"))
        await eventually(lambda: disk.callers() == 1, "the caller waits for the disk")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await disk.go_on()

        async def completed() -> bool:
            return [job.status for job in await queue.jobs(job_type="work")] == [State.COMPLETED]

        await eventually(completed)
