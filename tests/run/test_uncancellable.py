"""Handlers that ignore cancellation: their attempts end, and their slots stay occupied."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from howdah import JobContext, JobFailed, Queue, StaleLease, State
from howdah.run import executor
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

SHORT = timedelta(milliseconds=50)


@pytest.fixture(autouse=True)
def short_cleanup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "CLEANUP", 0.1)


async def swallowed(may_end: asyncio.Event) -> None:
    """Wait for the event and ignore every exception."""
    while not may_end.is_set():
        try:
            await may_end.wait()
        except BaseException:
            continue


async def shielded(may_end: asyncio.Event) -> None:
    """Clean up until the event is set."""
    try:
        await asyncio.sleep(3600)
    finally:
        await may_end.wait()


Wait = Callable[[asyncio.Event], Awaitable[None]]
STUBBORN = pytest.mark.parametrize("wait", [swallowed, shielded])


@STUBBORN
async def test_an_attempt_that_timed_out_is_settled_although_its_handler_runs(
    queue: Queue, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    may_end, refused = asyncio.Event(), asyncio.Event()

    @queue.job(timeout=0.05, max_attempts=1)
    async def stubborn(ctx: JobContext) -> str:
        with suppress(asyncio.CancelledError):
            await wait(may_end)
        try:
            ctx.progress(90)
        except StaleLease:
            refused.set()
        return "too late"

    @queue.job
    async def next_job() -> str:
        return "ran"

    handle = await stubborn.enqueue()
    async with queue.worker(concurrency=1) as worker:
        with pytest.raises(JobFailed, match=r"timed out after .*; its handler goes on by itself"):
            await handle.result(timeout=20)
        assert "job.abandoned" in caplog.text
        assert worker.free_slots == 0, "a handler that still runs keeps its slot"
        following = await next_job.enqueue()
        assert await following.status() is State.PENDING
        may_end.set()
        assert await following.result(timeout=20) == "ran"
        assert refused.is_set()
    job = await handle.job()
    assert (job.status, job.result, job.progress) == (State.FAILED, None, 0)


async def test_the_result_of_a_handler_after_its_timeout_is_refused(queue: Queue) -> None:
    @queue.job(timeout=0.05, max_attempts=1)
    async def late() -> str:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            return "too late"
        raise AssertionError

    handle = await late.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=r"timed out after 0:00:00\.05"):
            await handle.result(timeout=20)


@STUBBORN
async def test_a_cancelled_job_whose_handler_still_runs_keeps_its_slot(
    queue: Queue, wait: Wait, caplog: pytest.LogCaptureFixture
) -> None:
    may_end = asyncio.Event()

    @queue.job
    async def stubborn() -> str:
        await wait(may_end)
        return "too late"

    handle = await stubborn.enqueue()
    async with queue.worker(concurrency=1) as worker:
        await eventually(lambda: worker.free_slots == 0)
        await handle.cancel("not needed")
        await eventually(lambda: "job.abandoned" in caplog.text)
        assert worker.free_slots == 0
        may_end.set()
        await eventually(lambda: worker.free_slots == 1)
    job = await handle.job()
    assert (job.status, job.result) == (State.CANCELLED, None)


async def test_a_second_attempt_does_not_take_the_slot_of_a_first_that_still_runs(
    queue: Queue,
) -> None:
    """The same worker claims the job again while its first attempt runs."""
    may_end = asyncio.Event()

    @queue.job
    async def stubborn(ctx: JobContext) -> int:
        if ctx.attempt == 1:
            await swallowed(may_end)
        return ctx.attempt

    handle = await stubborn.enqueue()
    async with queue.worker(concurrency=2, silent_after=timedelta(seconds=1)) as worker:
        await eventually(lambda: worker.free_slots == 1)
        await queue.store.fetch(  # as if it had been recovered
            "update howdah.jobs set status = 'pending', worker_id = null, claimed_at = null, "
            "started_at = null"
        )
        assert await handle.result(timeout=20) == 2
        assert worker.free_slots == 1, "the first attempt still runs"
        may_end.set()
        await eventually(lambda: worker.free_slots == 2)


@STUBBORN
async def test_a_stopping_worker_releases_running_jobs_and_removes_its_row(
    queue: Queue, wait: Wait
) -> None:
    may_end = asyncio.Event()

    @queue.job
    async def stubborn() -> str:
        await wait(may_end)
        return "too late"

    handle = await stubborn.enqueue()
    async with queue.worker(grace=SHORT) as worker:
        await eventually(lambda: is_running(queue, "stubborn"))
    job = await handle.job()
    assert (job.status, job.attempts, job.worker_id) == (State.PENDING, 0, None)
    assert await queue.workers() == []
    may_end.set()
    await eventually(lambda: worker.free_slots > 0)
    assert await handle.status() is State.PENDING, "a late return changes nothing"


async def test_a_worker_can_stop_while_all_threads_of_asyncio_are_busy(queue: Queue) -> None:
    """Handlers may fill asyncio's own threads with calls that never end."""
    may_end, began = threading.Event(), threading.Semaphore(0)

    def block() -> None:
        began.release()
        may_end.wait(60)

    @queue.job
    async def hog() -> None:
        await asyncio.gather(*(asyncio.to_thread(block) for _ in range(100)))

    await hog.enqueue()
    try:
        async with queue.worker(grace=SHORT):
            await eventually(lambda: began.acquire(blocking=False))
        assert await queue.workers() == []
    finally:
        may_end.set()


async def test_a_worker_that_cannot_release_its_jobs_keeps_its_row(queue: Queue) -> None:
    """Other workers then notice its silence, well before `stale_after`."""

    @queue.job
    async def stubborn() -> None:
        await asyncio.sleep(3600)

    handle = await stubborn.enqueue()
    async with queue.worker(grace=SHORT) as worker:
        await eventually(lambda: is_running(queue, "stubborn"))
        await queue.store.fetch(
            "create function howdah.refuse_release() returns trigger language plpgsql as "
            "$$ begin raise exception 'no' using errcode = '23514'; end $$"
        )
        await queue.store.fetch(
            "create trigger refuse before update or delete on howdah.jobs_live for each row "
            "execute function howdah.refuse_release()"
        )
    assert (await handle.job()).worker_id == worker.id
    assert [row.id for row in await queue.workers()] == [worker.id]


PROGRAM = """
import asyncio, sys
from datetime import timedelta
from howdah import Queue

queue = Queue(sys.argv[1])

@queue.job
async def stubborn() -> None:
    print("began", flush=True)
    while True:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            pass

async def main() -> None:
    async with queue:
        handle = await stubborn.enqueue()
        async with queue.worker(grace=timedelta(seconds=0.1)):
            while await handle.status() != "running":
                await asyncio.sleep(0.01)
        print("left", await handle.status(), flush=True)

asyncio.run(main())
print("ended")
"""


def test_a_program_with_a_worker_ends_even_if_a_handler_does_not(dsn: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    ran = subprocess.run(
        [sys.executable, program, dsn], capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.stdout.splitlines() == ["began", "left pending", "ended"], ran.stderr
    assert "destroyed" not in ran.stderr


async def is_running(queue: Queue, job_type: str) -> bool:
    return [job.status for job in await queue.jobs(job_type=job_type)] == [State.RUNNING]
