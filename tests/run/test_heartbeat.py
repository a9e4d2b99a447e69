"""Beats, and what happens to a worker that is given up for lost."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from datetime import timedelta

import pytest

from howdah import JobContext, Queue, State
from howdah.run.heartbeat import Heartbeat
from tests.support.databases import Databases, away
from tests.support.waiting import eventually

SHORT = timedelta(milliseconds=500)


async def test_a_handler_that_blocks_the_loop_does_not_stop_the_beat(
    queue: Queue, dsn: str
) -> None:
    """The handler blocks until another thread has seen three beats, or a timeout ends."""
    beats: set[object] = set()

    @queue.job(max_attempts=1)
    async def blocking() -> int:
        watcher = threading.Thread(target=lambda: asyncio.run(watch_beats()))
        watcher.start()
        watcher.join(timeout=20)  # blocks the event loop of the worker, on purpose
        return len(beats)

    async def watch_beats() -> None:
        async with Queue(dsn) as other:

            async def three_beats() -> bool:
                beats.update(worker.beat_at for worker in await other.workers())
                return len(beats) >= 3

            await eventually(three_beats)

    handle = await blocking.enqueue()
    async with queue.worker(silent_after=SHORT):
        assert await handle.result(timeout=30) >= 3


async def test_a_worker_that_lost_a_job_stops_it_logs_it_and_settles_nothing(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    cancelled = asyncio.Event()

    @queue.job
    async def long(ctx: JobContext) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            assert ctx.lost
            cancelled.set()
            raise

    handle = await long.enqueue()
    with caplog.at_level(logging.WARNING, logger="howdah"):
        async with queue.worker(silent_after=SHORT, concurrency=1):
            await eventually(lambda: is_status(queue, handle.id, State.RUNNING))
            # as if it had been recovered and claimed by another worker
            await queue.store.fetch(
                "update howdah.jobs set worker_id = 'another', attempts = attempts + 1"
            )
            await asyncio.wait_for(cancelled.wait(), timeout=10)
    job = await handle.job()
    assert (job.worker_id, job.status) == ("another", State.RUNNING)
    assert "job.lost" in caplog.text


async def test_cancelling_a_running_job_stops_its_handler(queue: Queue) -> None:
    cancelled = asyncio.Event()

    @queue.job
    async def long() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    handle = await long.enqueue()
    async with queue.worker():
        await eventually(lambda: is_status(queue, handle.id, State.RUNNING))
        assert await handle.cancel("changed my mind")
        assert (await handle.job()).last_error == "changed my mind"
        await asyncio.wait_for(cancelled.wait(), timeout=10)
    assert await handle.status() is State.CANCELLED


async def test_the_next_report_of_a_thread_raises_after_its_job_was_cancelled(
    queue: Queue,
) -> None:
    stopped = threading.Event()

    @queue.job
    def stubborn(ctx: JobContext) -> None:
        try:
            while True:
                ctx.progress(1)
                time.sleep(0.005)
        finally:
            stopped.set()

    handle = await stubborn.enqueue()
    async with queue.worker():
        await eventually(lambda: is_status(queue, handle.id, State.RUNNING))
        await handle.cancel()
        await eventually(stopped.is_set)


async def test_a_thread_whose_job_was_cancelled_keeps_its_slot_until_it_ends(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    may_end = threading.Event()

    @queue.job
    def blocked() -> str:
        may_end.wait(timeout=60)
        return "too late"

    handle = await blocked.enqueue()
    async with queue.worker(concurrency=1) as worker:
        await eventually(lambda: is_status(queue, handle.id, State.RUNNING))
        await handle.cancel()
        await eventually(lambda: "job.abandoned" in caplog.text)
        assert worker.free_slots == 0
        may_end.set()
        await eventually(lambda: worker.free_slots == 1)
    assert (await handle.job()).result is None


async def test_the_jobs_of_a_silent_worker_are_recovered_by_a_live_one(queue: Queue) -> None:
    @queue.job
    async def mail(ctx: JobContext) -> int:
        return ctx.attempt

    handle = await mail.enqueue()
    await queue.store.fetch("select howdah.beat('silent', p_silent_after => '50 ms')")
    (held,) = await queue.claim(["mail"], worker_id="silent")
    async with queue.worker(upkeep_every=timedelta(milliseconds=50)):
        assert await handle.result(timeout=10) == 2
    assert not await queue.complete_many([held]), "the late report is refused"
    errors = (await handle.job()).errors
    assert [e["worker_id"] for e in errors] == ["silent"]
    assert "went silent" in errors[0]["error"]


async def is_status(queue: Queue, id: object, status: State) -> bool:
    return (await queue.get(str(id))).status is status


async def test_missed_beats_are_logged_more_and_more_rarely(
    queue: Queue, dsn: str, databases: Databases, caplog: pytest.LogCaptureFixture
) -> None:
    heartbeat = Heartbeat(
        queue.store,
        "alone",
        every=timedelta(milliseconds=20),
        silent_after=SHORT,
        info=lambda: "{}",
        leases=list,
        on_lost=lambda _: None,
    )
    await heartbeat.start()
    with caplog.at_level(logging.WARNING, logger="howdah.beat"), away(databases, dsn):
        await eventually(lambda: "missed=8 " in caplog.text, "eight beats are missed")
    await heartbeat.stop()
    # a beat at once after the first miss may succeed, while the database is being renamed
    _, _, last_row = caplog.text.rpartition("missed=1 ")
    assert re.findall(r"missed=(\d+)", last_row)[:3] == ["2", "4", "8"]


async def test_a_heartbeat_that_is_stopped_before_its_thread_began_ends(queue: Queue) -> None:
    may_begin = threading.Event()

    class SlowHeartbeat(Heartbeat):
        def _run(self) -> None:
            may_begin.wait(timeout=20)
            super()._run()

    heartbeat = SlowHeartbeat(
        queue.store,
        "stopped early",
        every=SHORT,
        silent_after=SHORT,
        info=lambda: "{}",
        leases=list,
        on_lost=lambda _: None,
    )
    starting = asyncio.create_task(heartbeat.start())
    await asyncio.sleep(0)
    stopping = asyncio.create_task(heartbeat.stop())
    await asyncio.sleep(0)
    may_begin.set()
    await stopping
    starting.cancel()
    assert "howdah-heartbeat" not in {thread.name for thread in threading.enumerate()}
