"""Jobs in threads have a limit of their own, and what waits for a thread keeps nobody waiting."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from howdah import BadInput, Queue, State
from tests.support.waiting import eventually

SELDOM = timedelta(minutes=10)  # polling: what is not woken in a test does not wake


class Crowd:
    """A job that waits at a gate, and how many were there at once."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self._lock = threading.Lock()
        self.inside = self.most = self.done = 0

    def register(self, queue: Queue, **options: Any) -> None:
        @queue.job(**options)
        def visit() -> None:  # pyright: ignore[reportUnusedFunction]
            self._visit()

    def _visit(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.gate.wait(60)
        with self._lock:
            self.inside -= 1
            self.done += 1


async def held(queue: Queue, job_type: str) -> int:
    counts = (await queue.counts()).get(job_type, {})
    return counts.get(State.CLAIMED, 0) + counts.get(State.RUNNING, 0)


@pytest.mark.parametrize("beside", [False, True], ids=["threads only", "beside async jobs"])
@pytest.mark.parametrize("timeout", [None, 60], ids=["", "with a timeout"])
async def test_no_more_threads_than_allowed_and_the_rest_stays_in_line(
    queue: Queue, beside: bool, timeout: int | None
) -> None:
    crowd = Crowd()
    crowd.register(queue, timeout=timeout)
    if beside:

        @queue.job
        async def other() -> None: ...

    await queue.enqueue_many(queue.draft("visit") for _ in range(40))
    async with queue.worker(threads=4, poll=SELDOM) as worker:
        await eventually(lambda: crowd.inside == 4)

        async def only_four_are_held() -> bool:
            return await held(queue, "visit") == 4

        await eventually(only_four_are_held)
        crowd.gate.set()
        await worker.run_until_idle()
    assert (crowd.most, crowd.done) == (4, 40)


async def test_what_waits_for_a_thread_does_not_keep_async_jobs_waiting(queue: Queue) -> None:
    crowd = Crowd()
    crowd.register(queue, priority=150)

    @queue.job
    async def quick(n: int) -> int:
        return n

    await queue.enqueue_many(queue.draft("visit") for _ in range(300))
    async with queue.worker(threads=2, concurrency=20, poll=SELDOM) as worker:
        await eventually(lambda: crowd.inside == 2)
        for n in range(30):  # one after another, each woken for
            handle = await quick.enqueue(n=n)
            assert await handle.result(timeout=30) == n
        await quick.enqueue_many(quick.draft(n=n) for n in range(500))

        async def all_done() -> bool:
            return (await queue.counts())["quick"].get(State.COMPLETED, 0) == 530

        await eventually(all_done)
        assert crowd.done == 0
        crowd.gate.set()
        await worker.run_until_idle()
    assert (crowd.most, crowd.done) == (2, 300)


async def test_both_kinds_are_worked_off_when_slots_are_scarce(queue: Queue) -> None:
    crowd = Crowd()
    crowd.gate.set()
    crowd.register(queue)
    done: list[int] = []

    @queue.job
    async def slow(n: int) -> None:
        await asyncio.sleep(0.001)
        done.append(n)

    drafts = [queue.draft("visit") if n % 2 else slow.draft(n=n) for n in range(600)]
    await queue.enqueue_many(drafts)
    async with queue.worker(threads=2, concurrency=3, poll=SELDOM) as worker:
        await worker.run_until_idle()
    assert (len(done), crowd.done) == (300, 300)
    assert crowd.most <= 2


async def test_an_abandoned_thread_keeps_its_place_and_no_other(queue: Queue) -> None:
    crowd = Crowd()
    crowd.register(queue, timeout=0.05, max_attempts=1)

    @queue.job
    async def quick() -> int:
        return 1

    first = await queue.enqueue("visit", max_attempts=1)
    async with queue.worker(threads=1, poll=SELDOM) as worker:

        async def timed_out() -> bool:
            return (await first.job()).status is State.FAILED

        await eventually(timed_out)
        second = await queue.enqueue("visit")
        assert await (await quick.enqueue()).result(timeout=30) == 1
        assert (await second.job()).status is State.PENDING
        crowd.gate.set()
        await second.result(timeout=30)
        await worker.run_until_idle()
    assert crowd.most == 1


@pytest.mark.parametrize("threads", [0, -1, 10_001])
async def test_a_limit_out_of_bounds_is_refused(queue: Queue, threads: int) -> None:
    @queue.job
    def plain() -> None: ...

    with pytest.raises(BadInput, match=f"threads lies between 1 and 10000, not {threads}"):
        queue.worker(threads=threads)


async def test_a_worker_tells_its_limit(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    @queue.job
    def plain() -> None: ...

    caplog.set_level("INFO", "howdah.worker")

    async def told(**options: Any) -> object:
        async with queue.worker(**options) as worker:
            (one,) = [one for one in await queue.workers() if one.id == worker.id]
            return one.info["threads"]

    assert await told() == 16
    assert await told(threads=3) == 3
    assert await told(threads=50, concurrency=20) == 20
    assert "threads=3" in caplog.text
