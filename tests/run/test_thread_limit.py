"""Jobs in threads have their own limit, and a job that waits for a thread delays no other job."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from howdah import BadInput, Queue, State
from tests.support.waiting import eventually

RARELY = timedelta(minutes=10)  # a worker that gets no notification does not wake in a test


class BlockingJob:
    """A job that waits for an event; counts how many run at once."""

    def __init__(self) -> None:
        self.may_end = threading.Event()
        self._lock = threading.Lock()
        self.running = self.most = self.done = 0

    def register(self, queue: Queue, **options: Any) -> None:
        @queue.job(**options)
        def blocked() -> None:  # pyright: ignore[reportUnusedFunction]
            self._run()

    def _run(self) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.may_end.wait(60)
        with self._lock:
            self.running -= 1
            self.done += 1


async def held(queue: Queue, job_type: str) -> int:
    counts = (await queue.counts()).get(job_type, {})
    return counts.get(State.CLAIMED, 0) + counts.get(State.RUNNING, 0)


@pytest.mark.parametrize("with_async", [False, True], ids=["threads only", "with async jobs"])
@pytest.mark.parametrize("timeout", [None, 60], ids=["", "with a timeout"])
async def test_no_more_threads_than_allowed_and_other_jobs_stay_in_line(
    queue: Queue, with_async: bool, timeout: int | None
) -> None:
    blocking = BlockingJob()
    blocking.register(queue, timeout=timeout)
    if with_async:

        @queue.job
        async def other() -> None: ...

    await queue.enqueue_many(queue.draft("blocked") for _ in range(40))
    async with queue.worker(threads=4, poll=RARELY) as worker:
        await eventually(lambda: blocking.running == 4)

        async def only_four_are_held() -> bool:
            return await held(queue, "blocked") == 4

        await eventually(only_four_are_held)
        blocking.may_end.set()
        await worker.run_until_idle()
    assert (blocking.most, blocking.done) == (4, 40)


async def test_jobs_that_wait_for_a_thread_do_not_delay_async_jobs(queue: Queue) -> None:
    blocking = BlockingJob()
    blocking.register(queue, priority=150)

    @queue.job
    async def quick(n: int) -> int:
        return n

    await queue.enqueue_many(queue.draft("blocked") for _ in range(300))
    async with queue.worker(threads=2, concurrency=20, poll=RARELY) as worker:
        await eventually(lambda: blocking.running == 2)
        for n in range(30):  # one after another, each with a notification
            handle = await quick.enqueue(n=n)
            assert await handle.result(timeout=30) == n
        await quick.enqueue_many(quick.draft(n=n) for n in range(500))

        async def all_done() -> bool:
            return (await queue.counts())["quick"].get(State.COMPLETED, 0) == 530

        await eventually(all_done)
        assert blocking.done == 0
        blocking.may_end.set()
        await worker.run_until_idle()
    assert (blocking.most, blocking.done) == (2, 300)


async def test_async_and_thread_jobs_both_complete_with_few_slots(queue: Queue) -> None:
    blocking = BlockingJob()
    blocking.may_end.set()
    blocking.register(queue)
    done: list[int] = []

    @queue.job
    async def slow(n: int) -> None:
        await asyncio.sleep(0.001)
        done.append(n)

    drafts = [queue.draft("blocked") if n % 2 else slow.draft(n=n) for n in range(600)]
    await queue.enqueue_many(drafts)
    async with queue.worker(threads=2, concurrency=3, poll=RARELY) as worker:
        await worker.run_until_idle()
    assert (len(done), blocking.done) == (300, 300)
    assert blocking.most <= 2


async def test_an_abandoned_thread_keeps_only_its_own_thread_slot(queue: Queue) -> None:
    blocking = BlockingJob()
    blocking.register(queue, timeout=0.05, max_attempts=1)

    @queue.job
    async def quick() -> int:
        return 1

    first = await queue.enqueue("blocked", max_attempts=1)
    async with queue.worker(threads=1, poll=RARELY) as worker:

        async def timed_out() -> bool:
            return (await first.job()).status is State.FAILED

        await eventually(timed_out)
        second = await queue.enqueue("blocked")
        assert await (await quick.enqueue()).result(timeout=30) == 1
        assert (await second.job()).status is State.PENDING
        blocking.may_end.set()
        await second.result(timeout=30)
        await worker.run_until_idle()
    assert blocking.most == 1


@pytest.mark.parametrize("threads", [0, -1, 10_001])
async def test_a_thread_limit_out_of_bounds_is_refused(queue: Queue, threads: int) -> None:
    @queue.job
    def plain() -> None: ...

    with pytest.raises(BadInput, match=f"threads must be between 1 and 10000, not {threads}"):
        queue.worker(threads=threads)


async def test_a_worker_reports_its_thread_limit(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    @queue.job
    def plain() -> None: ...

    caplog.set_level("INFO", "howdah.worker")

    async def reported_limit(**options: Any) -> object:
        async with queue.worker(**options) as worker:
            (row,) = [each for each in await queue.workers() if each.id == worker.id]
            return row.info["threads"]

    assert await reported_limit() == 16
    assert await reported_limit(threads=3) == 3
    assert await reported_limit(threads=50, concurrency=20) == 20
    assert "threads=3" in caplog.text
