"""A worker does what it claims, and says how it ended."""

from __future__ import annotations

from howdah import Queue, State


async def test_a_job_is_run_and_its_result_comes_back(queue: Queue) -> None:
    @queue.job
    async def double(n: int) -> int:
        return n * 2

    handle = await double.enqueue(n=21)
    async with queue.worker():
        assert await handle.result(timeout=10) == 42
    job = await handle.job()
    assert job.status is State.COMPLETED
    assert (job.attempts, job.progress) == (1, 100)
