"""A timeout ends the work, as far as its run mode allows."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from howdah import JobContext, JobFailed, Queue, StaleLease, State
from tests.run import process_jobs
from tests.support.waiting import eventually


async def test_an_async_handler_is_cancelled(queue: Queue) -> None:
    cancelled = asyncio.Event()

    @queue.job(timeout=0.05, max_attempts=1)
    async def slow() -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    handle = await slow.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match=r"timed out after 0:00:00\.05"):
            await handle.result(timeout=10)
        assert cancelled.is_set()


async def test_a_timeout_error_of_the_handler_is_not_taken_for_the_job_timeout(
    queue: Queue,
) -> None:
    @queue.job(timeout=60, max_attempts=1)
    async def impatient() -> None:
        raise TimeoutError("the other server is slow")

    handle = await impatient.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="TimeoutError: the other server is slow"):
            await handle.result(timeout=10)


async def test_a_thread_is_abandoned_its_slot_counted_and_its_result_refused(queue: Queue) -> None:
    may_end, refused = threading.Event(), threading.Event()

    @queue.job(timeout=0.05, max_attempts=1)
    def stuck(ctx: JobContext) -> str:
        may_end.wait(timeout=60)
        try:
            ctx.progress(90)
        except StaleLease:
            refused.set()
        return "too late"

    @queue.job
    async def next_job() -> str:
        return "ran"

    handle = await stuck.enqueue()
    async with queue.worker(concurrency=1) as worker:
        with pytest.raises(JobFailed, match="its thread goes on by itself"):
            await handle.result(timeout=10)
        following = await next_job.enqueue()
        assert worker.free_slots == 0, "an abandoned thread keeps its slot"
        assert await following.status() is State.PENDING
        may_end.set()
        assert await following.result(timeout=10) == "ran"
        await eventually(refused.is_set)
    job = await handle.job()
    assert (job.status, job.result, job.progress) == (State.FAILED, None, 0)


async def test_a_process_is_killed(dsn: str, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    async with process_jobs.queue_at(dsn) as queue:
        handle = await queue.enqueue("sleepy", {"path": str(pid_file)}, max_attempts=1)
        async with queue.worker(processes=1):
            with pytest.raises(JobFailed, match="its process was killed"):
                await handle.result(timeout=30)
            assert not process_exists(int(pid_file.read_text()))


def process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
