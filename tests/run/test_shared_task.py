"""Async jobs that never wait share a task, and none of them notices the others."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from uuid import uuid4

from howdah import JobContext, Queue
from howdah.handler import Handler, Rules
from howdah.in_hand import InHand
from howdah.job import Claim
from howdah.run.attempt import Attempt
from howdah.run.completions import Completions
from howdah.run.executor import Executor
from howdah.run.reports import Reports
from howdah.run.step_writer import StepWriter
from howdah.store import Store

JOBS = 20


def current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    assert task is not None
    return task


async def test_jobs_that_never_wait_share_a_task(queue: Queue) -> None:
    tasks: list[asyncio.Task[object]] = []

    @queue.job
    async def work(n: int) -> None:
        async with asyncio.timeout(60), asyncio.TaskGroup():  # these need a task
            tasks.append(current_task())

    await work.enqueue_many({"n": n} for n in range(JOBS))
    async with queue.worker(concurrency=JOBS) as worker:
        await worker.run_until_idle()
    assert len(tasks) == JOBS
    assert len(set(tasks)) < JOBS


async def test_a_job_that_waits_keeps_its_task_and_holds_nobody_up(queue: Queue) -> None:
    tasks: dict[int, asyncio.Task[object]] = {}
    last_began = asyncio.Event()

    @queue.job
    async def work(n: int) -> None:
        tasks[n] = current_task()
        if n == JOBS - 1:
            last_began.set()
        await last_began.wait()
        await asyncio.sleep(0)
        assert tasks[n] is current_task()

    handles = await work.enqueue_many(({"n": n} for n in range(JOBS)), returning="handles")
    async with asyncio.timeout(60), queue.worker(concurrency=JOBS) as worker:
        await worker.run_until_idle()
    assert [(await handle.job()).last_error for handle in handles] == [None] * JOBS
    assert len(set(tasks.values())) == JOBS


async def test_a_type_whose_handler_has_waited_shares_no_task(queue: Queue) -> None:
    tasks: list[asyncio.Task[object]] = []

    @queue.job
    async def work(wait: bool) -> None:
        tasks.append(current_task())
        if wait:
            await asyncio.sleep(0)

    await work.enqueue(wait=True)
    async with queue.worker(concurrency=JOBS) as worker:
        await worker.run_until_idle()
        await work.enqueue_many({"wait": False} for _ in range(JOBS))
        await worker.run_until_idle()
    assert len(set(tasks)) == 1 + JOBS


async def test_a_context_variable_is_not_seen_in_a_shared_task(queue: Queue) -> None:
    class NotComparable:
        def __eq__(self, other: object) -> bool:
            raise ValueError("cannot be compared")

    seen: list[object] = []
    variable: ContextVar[object] = ContextVar("variable")
    variable.set(first := NotComparable())

    @queue.job
    async def work(n: int) -> None:
        seen.append(variable.get())
        variable.set(NotComparable() if n % 2 else n)

    await work.enqueue_many({"n": n} for n in range(JOBS))
    async with queue.worker(concurrency=JOBS) as worker:
        await worker.run_until_idle()
    assert len(seen) == JOBS
    assert all(value is first for value in seen)


async def test_a_job_that_cancels_its_task_stops_no_other(queue: Queue) -> None:
    @queue.job
    async def work(n: int) -> str:
        if n == 0:
            current_task().cancel()
        else:
            await asyncio.sleep(0)
        return "done"

    handles = await work.enqueue_many(({"n": n} for n in range(JOBS)), returning="handles")
    async with queue.worker(concurrency=JOBS) as worker:
        await worker.run_until_idle()
    assert [await handle.result(timeout=30) for handle in handles] == ["done"] * JOBS


async def test_the_executor_waits_for_jobs_that_have_not_begun(queue: Queue) -> None:
    async def work() -> None:
        pass

    in_hand: InHand[Attempt] = InHand(slots=1, threads=1)
    handler = Handler(work, JobContext, rules=Rules())
    reports = Reports(StepWriter(queue.store, "worker"))
    completions = Completions(Store("postgresql://nowhere"), "worker", in_hand)
    executor = Executor({"work": handler}, in_hand, reports, completions, processes=1)
    executor.start(Claim(uuid4(), "work", 100, "{}", 1, 3, 0.0, 0.0, 0.0))
    async with asyncio.timeout(60):
        await executor.drained(3600, asyncio.Event())
    assert len(in_hand.endings) == 1
