"""A worker runs the jobs that it claims, each in its run mode, and records how they ended."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from howdah import BadInput, JobContext, JobFailed, Priority, Queue, State
from tests.run import process_jobs
from tests.support.waiting import eventually


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


async def test_the_more_urgent_job_runs_first_and_the_older_one_among_equals(queue: Queue) -> None:
    ran: list[str] = []

    @queue.job
    async def note(name: str) -> None:
        ran.append(name)

    await note.options(priority=Priority.BACKFILL).enqueue(name="backfill")
    await note.enqueue(name="first")
    await note.enqueue(name="second")
    await note.options(priority=Priority.EXPLICIT).enqueue(name="explicit")
    async with queue.worker(concurrency=1) as worker:
        await worker.run_until_idle()
    assert ran == ["explicit", "first", "second", "backfill"]


async def test_no_more_jobs_run_at_once_than_there_are_slots(queue: Queue) -> None:
    running, most = 0, 0

    @queue.job
    async def busy() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1

    await busy.enqueue_many(busy.draft() for _ in range(40))
    async with queue.worker(concurrency=4) as worker:
        await worker.run_until_idle()
    assert most == 4
    assert await queue.counts() == {"busy": {State.COMPLETED: 40}}


@pytest.mark.parametrize("timeout", [None, 60])
async def test_every_error_of_a_plain_function_fails_the_job(
    queue: Queue, timeout: float | None
) -> None:
    raised = [
        ValueError("a"),
        SystemExit(3),
        KeyboardInterrupt(),
        StopIteration("b"),
        KeyError("c"),
    ]
    raised += [asyncio.CancelledError()]

    @queue.job(max_attempts=1, timeout=timeout)
    def fails(which: int) -> None:
        raise raised[which]

    handles = [await fails.enqueue(which) for which in range(len(raised))]
    async with queue.worker():
        for handle, error in zip(handles, raised, strict=True):
            with pytest.raises(JobFailed, match=type(error).__name__):
                await handle.result(timeout=10)


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_plain_function_fails_if_no_thread_can_start(
    queue: Queue, monkeypatch: pytest.MonkeyPatch, timeout: float | None
) -> None:
    @queue.job(max_attempts=1, timeout=timeout)
    def mail() -> None: ...

    monkeypatch.setattr("threading.Thread.start", refuse_job_threads)
    handle = await mail.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="can't start new thread"):
            await handle.result(timeout=10)


@dataclass
class Fragile:
    """A payload whose own check raises an unusual error."""

    number: int

    def __post_init__(self) -> None:
        if self.number:
            raise KeyError(self.number)


@pytest.mark.parametrize("run", ["async", "thread", "timed"])
async def test_a_payload_whose_own_check_raises_fails_the_job(queue: Queue, run: str) -> None:
    """The job fails, and the worker and the slot are kept."""
    if run == "async":

        @queue.job(name="fragile")
        async def in_the_loop(payload: Fragile) -> str:
            return "ran"
    else:

        @queue.job(name="fragile", timeout=60 if run == "timed" else None)
        def in_a_thread(payload: Fragile) -> str:
            return "ran"

    with pytest.raises(BadInput, match="does not fit fragile: KeyError: 7"):
        await queue.enqueue("fragile", {"payload": {"number": 7}})
    async with Queue(queue.store.shown_dsn) as other_release:
        ids = [
            (await other_release.enqueue("fragile", {"payload": {"number": number}})).id
            for number in (7, 0)
        ]
    bad, good = map(queue.handle, ids)
    async with queue.worker(concurrency=1):
        assert await good.result(timeout=10) == "ran"
        with pytest.raises(JobFailed, match="does not fit fragile: KeyError: 7"):
            await bad.result(timeout=10)


START = threading.Thread.start


def refuse_job_threads(thread: threading.Thread) -> None:
    if thread.name.startswith("howdah-thread"):
        raise RuntimeError("can't start new thread")
    START(thread)


async def test_a_plain_function_runs_in_a_thread_with_the_same_context(queue: Queue) -> None:
    threads: set[int] = set()

    @queue.job
    def plain(ctx: JobContext, n: int) -> int:
        threads.add(threading.get_ident())
        ctx.progress(50, "half way")
        ctx.emit("seen", {"n": n})
        return n + 1

    handle = await plain.enqueue(n=1)
    async with queue.worker():
        assert await handle.result(timeout=10) == 2
    assert threads != {threading.get_ident()}
    job = await handle.job()
    assert (job.current_stage, job.events_count) == ("half way", 1)


async def test_a_process_handler_runs_in_another_process(dsn: str) -> None:
    async with process_jobs.queue_at(dsn) as queue:
        handles = [await queue.enqueue("whoami", {"n": n}) for n in range(3)]
        async with queue.worker(processes=1):
            results = [await handle.result(timeout=30) for handle in handles]
        job = await handles[0].job()
    assert {r["pid"] for r in results} != {os.getpid()}
    assert len({r["pid"] for r in results}) == 1, "one child runs one job after another"
    assert [r["n"] for r in results] == [0, 1, 2]
    assert (job.current_stage, job.events_count) == ("in a child", 1)


async def test_a_process_that_dies_fails_the_attempt(dsn: str) -> None:
    async with process_jobs.queue_at(dsn) as queue:
        handle = await queue.enqueue("die", max_attempts=1)
        after = await queue.enqueue("whoami", {"n": 1})
        async with queue.worker(processes=1):
            with pytest.raises(JobFailed, match="ended with signal 9"):
                await handle.result(timeout=30)
            assert (await after.result(timeout=30))["n"] == 1


async def test_a_process_handler_can_retry_and_raise(dsn: str) -> None:
    async with process_jobs.queue_at(dsn) as queue:
        retried = await queue.enqueue("second_time")
        raised = await queue.enqueue("raises", max_attempts=1)
        async with queue.worker(processes=1):
            assert await retried.result(timeout=30) == 2
            with pytest.raises(JobFailed, match="ValueError: from the child"):
                await raised.result(timeout=30)
        assert "in raises" in (await raised.job()).errors[0]["traceback"]


async def test_a_worker_does_not_claim_unknown_types(queue: Queue) -> None:
    @queue.job
    async def known() -> None: ...

    await known.enqueue()
    other = await queue.enqueue("unknown")
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert await other.status() is State.PENDING
    assert (await queue.counts())["known"] == {State.COMPLETED: 1}


async def test_a_payload_with_a_wrong_value_fails_at_once_and_is_not_retried(queue: Queue) -> None:
    @queue.job(max_attempts=5)
    async def resize(path: str, width: int) -> None: ...

    other_release = Queue(queue.store.shown_dsn)
    handle = await other_release.enqueue("resize", {"path": "a.png", "width": "wide"})
    await other_release.close()
    async with queue.worker():
        with pytest.raises(JobFailed, match=r"does not fit resize: Expected `int`, got `str`"):
            await queue.handle(handle.id).result(timeout=10)
    assert (await queue.get(handle.id)).attempts == 1


@dataclass
class Point:
    x: int
    y: int


async def test_arguments_arrive_as_the_types_the_function_names(queue: Queue) -> None:
    seen: list[object] = []

    @queue.job
    async def take(at: datetime, points: list[Point], note: str | None = None) -> None:
        seen.extend([at, points, note])

    moment = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    await take.enqueue(at=moment, points=[Point(1, 2)])
    async with queue.worker() as worker:
        await worker.run_until_idle()
    assert seen == [moment, [Point(1, 2)], None]


async def test_a_delayed_job_runs_when_it_is_due_and_not_before(queue: Queue) -> None:
    ran = asyncio.Event()

    @queue.job
    async def later() -> None:
        ran.set()

    handle = await later.options(delay=timedelta(hours=1)).enqueue()
    async with queue.worker() as worker:
        await worker.run_until_idle()
        assert not ran.is_set()
        assert await handle.status() is State.PENDING
        await queue.store.fetch("update howdah.jobs set run_at = now() where id = $1", handle.id)
        await asyncio.wait_for(ran.wait(), timeout=10)


async def test_a_claimed_job_that_cannot_start_is_released(queue: Queue) -> None:
    """Fast jobs fill the buffer; then slow ones take every slot, and the rest is released."""
    may_end = asyncio.Event()

    @queue.job
    async def fast() -> None: ...

    @queue.job
    async def slow() -> None:
        await may_end.wait()

    await fast.enqueue_many(fast.options(priority=150).draft() for _ in range(3000))
    await slow.enqueue_many(slow.draft() for _ in range(500))

    async def only_the_running_are_held() -> bool:
        """Only running jobs are held, and all others are pending."""
        return (await queue.counts()).get("slow") == {State.RUNNING: 10, State.PENDING: 490}

    async with queue.worker(concurrency=10):
        await eventually(only_the_running_are_held)
        waiting = await queue.jobs(status="pending", limit=500)
        assert {job.attempts for job in waiting} == {0}, "a release does not count as an attempt"
        may_end.set()


async def test_a_result_that_is_not_json_fails_the_job_clearly(queue: Queue) -> None:
    @queue.job
    async def strange() -> object:
        return object()

    handle = await strange.enqueue()
    async with queue.worker():
        with pytest.raises(JobFailed, match="the result of strange is not JSON"):
            await handle.result(timeout=10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be between 1 and 10000"),
        ({"batch_size": -1}, "batch_size must be between 1 and 10000"),
        ({"poll": timedelta()}, "poll must be longer than 0"),
        ({"job_types": ["unknown"]}, "no function is registered for job type 'unknown'"),
        ({"job_types": []}, "job_types is empty: name a job type"),
    ],
)
async def test_a_worker_refuses_invalid_options(
    queue: Queue, options: dict[str, object], message: str
) -> None:
    @queue.job
    async def known() -> None: ...

    with pytest.raises(BadInput, match=message):
        queue.worker(**options)  # pyright: ignore[reportArgumentType]


async def test_a_worker_without_functions_says_what_is_missing(queue: Queue) -> None:
    with pytest.raises(BadInput, match=r"register functions with @queue\.job"):
        queue.worker()
