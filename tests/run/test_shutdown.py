"""When a worker stops, running jobs may end, others are released, and none is lost."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from howdah import HowdahError, JobContext, Queue, State
from howdah.store.listen import Listener
from tests.support.waiting import eventually

ATTEMPTS_BEFORE = 0


async def test_running_jobs_may_end_within_the_grace(queue: Queue) -> None:
    started, may_end = asyncio.Event(), asyncio.Event()

    @queue.job
    async def careful() -> str:
        started.set()
        await may_end.wait()
        return "completed"

    handle = await careful.enqueue()
    waiting = await careful.options(delay=3600).enqueue()
    worker = queue.worker(concurrency=1)
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(started.wait(), timeout=10)
    worker.shut_down()
    late = await careful.enqueue()
    may_end.set()
    await running
    assert (await handle.job()).result == "completed"
    assert await late.status() is State.PENDING, "nothing is claimed after the first signal"
    assert await waiting.status() is State.PENDING
    assert await queue.workers() == [], "the worker removed its row"


async def test_a_job_that_runs_longer_than_the_grace_is_released_uncounted(queue: Queue) -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @queue.job
    async def endless() -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    handle = await endless.enqueue()
    async with queue.worker(grace=timedelta(milliseconds=50)):
        await asyncio.wait_for(started.wait(), timeout=10)
    assert cancelled.is_set()
    job = await handle.job()
    assert (job.status, job.attempts, job.worker_id) == (State.PENDING, ATTEMPTS_BEFORE, None)


async def test_a_second_shut_down_stops_at_once_and_releases_jobs(queue: Queue) -> None:
    started = asyncio.Event()

    @queue.job
    async def endless() -> None:
        started.set()
        await asyncio.sleep(3600)

    handle = await endless.enqueue()
    worker = queue.worker(grace=timedelta(hours=1))
    running = asyncio.create_task(worker.run())
    await asyncio.wait_for(started.wait(), timeout=10)
    worker.shut_down()
    worker.shut_down()
    await asyncio.wait_for(running, timeout=20)
    job = await handle.job()
    assert (job.status, job.attempts) == (State.PENDING, ATTEMPTS_BEFORE)


async def test_every_job_that_ended_is_settled_before_the_worker_leaves(queue: Queue) -> None:
    ran = 0

    @queue.job
    async def count(ctx: JobContext) -> None:
        nonlocal ran
        ran += 1
        ctx.emit("ran")

    await count.enqueue_many(count.draft() for _ in range(5000))
    async with queue.worker():
        await eventually(lambda: ran > 500)
    counts = (await queue.counts())["count"]
    assert counts.get(State.COMPLETED, 0) == ran
    assert counts.get(State.PENDING, 0) == 5000 - ran
    assert set(counts) <= {State.COMPLETED, State.PENDING}


async def test_a_worker_asked_to_stop_before_it_started_stops_at_once(queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    handle = await mail.enqueue()
    worker = queue.worker()
    worker.shut_down()
    await asyncio.wait_for(worker.run(), timeout=20)
    assert await handle.status() is State.PENDING


async def test_a_worker_cannot_start_twice(queue: Queue) -> None:
    @queue.job
    async def mail() -> None: ...

    worker = queue.worker()
    async with worker:
        pass
    with pytest.raises(HowdahError, match=r"create another with queue\.worker\(\)"):
        await worker.start()


async def test_the_heartbeat_ends_even_if_another_part_cannot_be_stopped(
    queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the beats would keep a dead worker alive for the others."""

    @queue.job
    async def nothing() -> None: ...

    async def stuck(_: Listener) -> None:
        raise RuntimeError("stuck")

    with monkeypatch.context() as broken:
        broken.setattr(Listener, "stop", stuck)
        others = set(threading.enumerate())
        worker = queue.worker()
        await worker.start()
        started = set(threading.enumerate()) - others
        listener = next(t for t in asyncio.all_tasks() if t.get_name() == "howdah-listen")
        with pytest.raises(RuntimeError, match="stuck"):
            await worker.stop()
    [heartbeat] = [thread for thread in started if thread.name == "howdah-heartbeat"]
    assert not heartbeat.is_alive()
    listener.cancel()
